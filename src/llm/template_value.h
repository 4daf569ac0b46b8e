// SPDX-License-Identifier: Apache-2.0
// Values of chat templates, as Jinja has them from Python.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

class TemplateValue;

struct UndefinedValue {
  std::string name;  // what was looked for
};
struct NoneValue {};

// Lists and dictionaries never change, so they are shared; a list that holds one list twice weighs
// exponentially more than it takes memory. Each knows what it weighs.
struct ListValue {
  std::vector<TemplateValue> items;
  bool isTuple = false;
  uint64_t weight = 0;
  uint32_t depth = 0;
};
struct DictionaryValue {
  std::vector<std::pair<std::string, TemplateValue>> items;  // in their order; keys differ
  uint64_t weight = 0;
  uint32_t depth = 0;

  const TemplateValue* find(std::string_view key) const;
};

// What has an identity: namespaces, loops, macros, functions and methods. Printed as its name only,
// so that it has no weight.
struct ObjectValue {
  explicit ObjectValue(std::string objectName) : name(std::move(objectName)) {}
  virtual ~ObjectValue() = default;
  ObjectValue(const ObjectValue&) = delete;
  ObjectValue& operator=(const ObjectValue&) = delete;

  std::string name;
  uint32_t depth = 0;  // how deeply the values nest that it keeps
};

// A value of a template. Copies are cheap.
class TemplateValue {
 public:
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const ListValue>;
  using Dictionary = std::shared_ptr<const DictionaryValue>;
  using Object = std::shared_ptr<ObjectValue>;

  static constexpr uint32_t kMaxDepth = 100;

  TemplateValue() : value_(NoneValue()) {}
  // Of nothing else that converts to bool, such as pointers.
  template <std::same_as<bool> Truth>
  TemplateValue(Truth value) : value_(value) {}
  TemplateValue(int64_t value) : value_(value) {}
  TemplateValue(double value) : value_(value) {}
  TemplateValue(std::string text) : value_(std::make_shared<const std::string>(std::move(text))) {}
  TemplateValue(std::string_view text) : TemplateValue(std::string(text)) {}
  TemplateValue(const char* text) : TemplateValue(std::string(text)) {}
  TemplateValue(Object object) : value_(std::move(object)) {}

  static TemplateValue undefined(std::string name) {
    return TemplateValue(Variant(UndefinedValue{std::move(name)}));
  }
  // Error: kBadData where lists and dictionaries nest more than kMaxDepth deep.
  static Result<TemplateValue> list(std::vector<TemplateValue> items, bool isTuple = false);
  // Of keys that are there twice the last value counts.
  static Result<TemplateValue> dictionary(std::vector<std::pair<std::string, TemplateValue>> items);

  bool isUndefined() const { return std::holds_alternative<UndefinedValue>(value_); }
  bool isNone() const { return std::holds_alternative<NoneValue>(value_); }
  bool isNumber() const { return asInteger() != nullptr || asFloat() != nullptr || asBool(); }
  const UndefinedValue* asUndefined() const { return std::get_if<UndefinedValue>(&value_); }
  const bool* asBool() const { return std::get_if<bool>(&value_); }
  const int64_t* asInteger() const { return std::get_if<int64_t>(&value_); }
  const double* asFloat() const { return std::get_if<double>(&value_); }
  const std::string* asText() const;
  const ListValue* asList() const;
  const DictionaryValue* asDictionary() const;
  Object asObject() const;

  // The number of bool, integer or float.
  double toNumber() const;
  // As Python's bool(): of undefined values, none, zero and what is empty it is false.
  bool isTrue() const;
  // How much work it is to look at all of it, about a byte of text for each unit.
  uint64_t weight() const;
  uint32_t depth() const;
  // "a string", "a list", …
  const char* kindName() const;

 private:
  using Variant = std::variant<UndefinedValue, NoneValue, bool, int64_t, double, Text, List,
                               Dictionary, Object>;
  explicit TemplateValue(Variant value) : value_(std::move(value)) {}

  Variant value_;
};

// ---- Looking at whole values; callers have paid for their weight -------------------------------

// As Python's ==. Objects are equal to themselves only.
bool areEqual(const TemplateValue& left, const TemplateValue& right);

// As Python's str(), and with quotes as its repr(). At most `limit` bytes, else the text is cut:
// callers then find that it is too long.
std::string printed(const TemplateValue& value, size_t limit);
std::string printedWithQuotes(const TemplateValue& value, size_t limit);

struct JsonStyle {
  int64_t indent = -1;  // of a level, in spaces; below 0: everything in one line
  bool isSorted = false;
  bool isAscii = false;
  std::string itemSeparator;  // empty: what Python uses
  std::string keySeparator;
};

// Error: kBadData for a value that has no JSON, or text of more than `limit` bytes.
Result<std::string> toJson(const TemplateValue& value, const JsonStyle& style, size_t limit);

// As Python writes a float.
std::string floatText(double number);

}  // namespace hearth::llm
