// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "llm/template_functions.h"
#include "llm/template_text.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

using Values = std::vector<TemplateValue>;
using Arguments = TemplateArguments;

constexpr int64_t kMostIndent = 64;

// The arguments behind the first `count`, for a filter or test that another one calls.
Arguments rest(const Arguments& arguments, size_t count) {
  Arguments made;
  if (arguments.positional.size() > count)
    made.positional.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(count),
                           arguments.positional.end());
  return made;
}

// An attribute such as "function.name", of lists also "0".
Result<TemplateValue> attributeOf(const TemplateValue& value, std::string_view path,
                                  TemplateBudget* budget) {
  TemplateValue found = value;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    int64_t number = 0;
    const auto result = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool isNumber = result.ec == std::errc() && result.ptr == name.data() + name.size();
    if (found.isUndefined() || found.isNone()) return TemplateValue::undefined(std::string(name));
    HEARTH_ASSIGN(found,
                  itemOf(found, isNumber ? TemplateValue(number) : TemplateValue(name), budget));
  }
  return found;
}

// What values are compared by: themselves or an attribute; strings in small letters unless case
// counts.
Result<TemplateValue> sortKey(const TemplateValue& value, const std::string& attribute,
                              bool isCaseSensitive, TemplateBudget* budget) {
  HEARTH_ASSIGN(TemplateValue key, attributeOf(value, attribute, budget));
  if (key.asText() == nullptr || isCaseSensitive) return key;
  return budget->text(lowerText(*key.asText()));
}

Result<Values> sortValues(Values values, const std::string& attribute, bool isCaseSensitive,
                          bool isReversed, TemplateBudget* budget) {
  std::vector<std::pair<TemplateValue, size_t>> keys;
  for (size_t i = 0; i < values.size(); ++i) {
    HEARTH_ASSIGN(TemplateValue key, sortKey(values[i], attribute, isCaseSensitive, budget));
    keys.emplace_back(std::move(key), i);
  }
  Status status;
  std::ranges::stable_sort(keys, [&](const auto& left, const auto& right) {
    if (!status) return false;
    auto order = compareValues(left.first, right.first, budget);
    if (!order) {
      status = std::unexpected(std::move(order.error()));
      return false;
    }
    return isReversed ? *order > 0 : *order < 0;
  });
  HEARTH_TRY(status);
  Values sorted;
  for (const auto& [key, place] : keys) sorted.push_back(values[place]);
  return sorted;
}

Result<TemplateValue> filterSort(const TemplateValue& value, const Arguments& arguments,
                                 TemplateBudget* budget) {
  HEARTH_TRY(arguments.check("sort", {"reverse", "case_sensitive", "attribute"}));
  HEARTH_ASSIGN(Values items, itemsOf(value, budget));
  HEARTH_ASSIGN(const bool isReversed, arguments.boolean(0, "reverse", false));
  HEARTH_ASSIGN(const bool isCaseSensitive, arguments.boolean(1, "case_sensitive", false));
  HEARTH_ASSIGN(const std::string attribute, arguments.text(2, "attribute", ""));
  HEARTH_ASSIGN(items,
                sortValues(std::move(items), attribute, isCaseSensitive, isReversed, budget));
  return budget->list(std::move(items));
}

Result<TemplateValue> filterDictSort(const TemplateValue& value, const Arguments& arguments,
                                     TemplateBudget* budget) {
  HEARTH_ASSIGN(const bool isCaseSensitive, arguments.boolean(0, "case_sensitive", false));
  HEARTH_ASSIGN(const std::string by, arguments.text(1, "by", "key"));
  HEARTH_ASSIGN(const bool isReversed, arguments.boolean(2, "reverse", false));
  HEARTH_ASSIGN(const TemplateValue pairs, callTemplateMethod(value, "items", {}, budget));
  HEARTH_ASSIGN(Values items, itemsOf(pairs, budget));
  HEARTH_ASSIGN(items, sortValues(std::move(items), by == "value" ? "1" : "0", isCaseSensitive,
                                  isReversed, budget));
  return budget->list(std::move(items));
}

// select, reject, selectattr and rejectattr.
Result<TemplateValue> filterSelect(std::string_view name, const TemplateValue& value,
                                   const Arguments& arguments, TemplateBudget* budget) {
  // As in Jinja2: nothing is chosen of what is false, as none.
  if (!value.isTrue()) return budget->list({});
  const bool isByAttribute = name.ends_with("attr");
  const bool isRejected = name.starts_with("reject");
  HEARTH_ASSIGN(const Values items, itemsOf(value, budget));
  std::string attribute;
  if (isByAttribute) {
    HEARTH_ASSIGN(attribute, arguments.text(0, "attr", ""));
  }
  const size_t own = isByAttribute ? 1 : 0;
  HEARTH_ASSIGN(const std::string test, arguments.text(own, "test", ""));
  const Arguments others = rest(arguments, own + 1);
  Values kept;
  for (const TemplateValue& item : items) {
    HEARTH_ASSIGN(const TemplateValue key, attributeOf(item, attribute, budget));
    bool isTrue = key.isTrue();
    if (!test.empty()) {
      HEARTH_ASSIGN(isTrue, applyTemplateTest(test, key, others, budget));
    }
    if (isTrue != isRejected) kept.push_back(item);
  }
  return budget->list(std::move(kept));
}

Result<TemplateValue> filterMap(const TemplateValue& value, const Arguments& arguments,
                                TemplateBudget* budget) {
  if (!value.isTrue()) return budget->list({});
  HEARTH_ASSIGN(Values items, itemsOf(value, budget));
  const TemplateValue* const attribute = arguments.find(SIZE_MAX, "attribute");
  const TemplateValue* const otherwise = arguments.find(SIZE_MAX, "default");
  HEARTH_ASSIGN(const std::string filter, arguments.text(0, "filter", ""));
  if (filter == "map")
    return fail(ErrorCode::kUnsupported, "The chat template maps by map, which is not supported.");
  const Arguments others = rest(arguments, 1);
  for (TemplateValue& item : items) {
    if (attribute == nullptr) {
      HEARTH_ASSIGN(item, applyTemplateFilter(filter, item, others, budget));
      continue;
    }
    HEARTH_ASSIGN(const std::string path, textOfValue(*attribute, budget));
    HEARTH_ASSIGN(item, attributeOf(item, path, budget));
    if (item.isUndefined() && otherwise != nullptr) item = *otherwise;
  }
  return budget->list(std::move(items));
}

Result<TemplateValue> filterUnique(const TemplateValue& value, const Arguments& arguments,
                                   TemplateBudget* budget) {
  HEARTH_ASSIGN(const Values items, itemsOf(value, budget));
  HEARTH_ASSIGN(const bool isCaseSensitive, arguments.boolean(0, "case_sensitive", false));
  HEARTH_ASSIGN(const std::string attribute, arguments.text(1, "attribute", ""));
  Values keys;
  Values kept;
  for (const TemplateValue& item : items) {
    HEARTH_ASSIGN(TemplateValue key, sortKey(item, attribute, isCaseSensitive, budget));
    bool isKnown = false;
    for (size_t i = 0; i < keys.size() && !isKnown; ++i) {
      HEARTH_ASSIGN(isKnown, areEqualValues(keys[i], key, budget));
    }
    if (isKnown) continue;
    keys.push_back(std::move(key));
    kept.push_back(item);
  }
  return budget->list(std::move(kept));
}

Result<TemplateValue> filterJoin(const TemplateValue& value, const Arguments& arguments,
                                 TemplateBudget* budget) {
  HEARTH_TRY(arguments.check("join", {"d", "attribute"}));
  HEARTH_ASSIGN(const Values items, itemsOf(value, budget));
  HEARTH_ASSIGN(const std::string separator, arguments.text(0, "d", ""));
  HEARTH_ASSIGN(const std::string attribute, arguments.text(1, "attribute", ""));
  std::string made;
  for (size_t i = 0; i < items.size(); ++i) {
    HEARTH_ASSIGN(const TemplateValue item, attributeOf(items[i], attribute, budget));
    HEARTH_ASSIGN(const std::string text, textOfValue(item, budget));
    HEARTH_TRY(budget->allocate(separator.size()));
    HEARTH_TRY(budget->spend(separator.size() / 64));
    if (i > 0) made += separator;
    made += text;
  }
  return TemplateValue(std::move(made));
}

// The least or the greatest, and the sum.
Result<TemplateValue> filterReduce(std::string_view name, const TemplateValue& value,
                                   const Arguments& arguments, TemplateBudget* budget) {
  HEARTH_ASSIGN(const Values items, itemsOf(value, budget));
  HEARTH_ASSIGN(const std::string attribute,
                arguments.text(name == "sum" ? 0 : 1, "attribute", ""));
  if (name == "sum") {
    int64_t integer = 0;
    double number = 0;
    bool isFloat = false;
    for (const TemplateValue& item : items) {
      HEARTH_ASSIGN(const TemplateValue one, attributeOf(item, attribute, budget));
      if (!one.isNumber())
        return fail(ErrorCode::kBadData, "The chat template adds {}.", one.kindName());
      number += one.toNumber();
      isFloat = isFloat || one.asFloat() != nullptr;
      const int64_t add = one.asInteger() != nullptr ? *one.asInteger() : one.isTrue() ? 1 : 0;
      if (__builtin_add_overflow(integer, add, &integer)) isFloat = true;
    }
    return isFloat ? TemplateValue(number) : TemplateValue(integer);
  }
  if (items.empty()) return TemplateValue::undefined("an item of an empty list");
  HEARTH_ASSIGN(const Values sorted, sortValues(items, attribute, false, name == "max", budget));
  return sorted.front();
}

Result<TemplateValue> filterIndent(const TemplateValue& value, const Arguments& arguments,
                                   TemplateBudget* budget) {
  HEARTH_TRY(arguments.check("indent", {"width", "first", "blank"}));
  HEARTH_ASSIGN(const std::string text, textOfValue(value, budget));
  const TemplateValue* const width = arguments.find(0, "width");
  std::string indent(4, ' ');
  if (width != nullptr && width->asText() != nullptr) {
    indent = *width->asText();
  } else {
    HEARTH_ASSIGN(const int64_t count, arguments.integer(0, "width", 4));
    indent.assign(static_cast<size_t>(std::clamp<int64_t>(count, 0, kMostIndent)), ' ');
  }
  HEARTH_ASSIGN(const bool isFirst, arguments.boolean(1, "first", false));
  HEARTH_ASSIGN(const bool isBlank, arguments.boolean(2, "blank", false));
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) + 1;
  HEARTH_TRY(budget->allocate(text.size() + lines * indent.size()));
  HEARTH_TRY(budget->spend(1 + (text.size() + lines * indent.size()) / 8));
  std::string made;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool isIndented = begin == 0 ? isFirst : isBlank || end > begin;
    if (isIndented) made += indent;
    made.append(text, begin, end - begin);
    if (end < text.size()) made.push_back('\n');
    begin = end + 1;
  }
  return TemplateValue(std::move(made));
}

Result<TemplateValue> filterToJson(const TemplateValue& value, const Arguments& arguments,
                                   TemplateBudget* budget) {
  HEARTH_TRY(arguments.check("tojson", {"indent", "ensure_ascii", "sort_keys", "separators"}));
  HEARTH_TRY(budget->look(value));
  JsonStyle style;
  HEARTH_ASSIGN(style.indent, arguments.integer(0, "indent", -1));
  style.indent = std::min(style.indent, kMostIndent);
  HEARTH_ASSIGN(style.isAscii, arguments.boolean(1, "ensure_ascii", false));
  HEARTH_ASSIGN(style.isSorted, arguments.boolean(2, "sort_keys", false));
  if (const TemplateValue* const separators = arguments.find(3, "separators")) {
    HEARTH_ASSIGN(const Values both, itemsOf(*separators, budget));
    if (both.size() == 2 && both[0].asText() != nullptr && both[1].asText() != nullptr) {
      style.itemSeparator = *both[0].asText();
      style.keySeparator = *both[1].asText();
    }
  }
  HEARTH_ASSIGN(std::string json, toJson(value, style, budget->textLimit()));
  HEARTH_TRY(budget->spend(1 + json.size() / 8));
  return budget->text(std::move(json));
}

Result<TemplateValue> filterNumber(std::string_view name, const TemplateValue& value,
                                   const Arguments& arguments) {
  if (name == "abs") {
    if (const auto* const integer = value.asInteger();
        integer != nullptr && *integer != std::numeric_limits<int64_t>::min())
      return TemplateValue(std::abs(*integer));
    return TemplateValue(std::abs(value.toNumber()));
  }
  if (name == "round") {
    HEARTH_ASSIGN(const int64_t precision, arguments.integer(0, "precision", 0));
    HEARTH_ASSIGN(const std::string method, arguments.text(1, "method", "common"));
    const double scale = std::pow(10.0, static_cast<double>(std::clamp<int64_t>(precision, -9, 9)));
    const double scaled = value.toNumber() * scale;
    const double rounded = method == "ceil"    ? std::ceil(scaled)
                           : method == "floor" ? std::floor(scaled)
                                               : std::nearbyint(scaled);
    return TemplateValue(rounded / scale);
  }
  const TemplateValue* const otherwise = arguments.find(0, "default");
  double number = value.toNumber();
  bool isNumber = value.isNumber();
  if (const auto* const text = value.asText()) {
    const std::string_view digits = stripText(*text, nullptr, true, true);
    if (name == "int") {
      int64_t integer = 0;
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), integer);
      if (result.ec == std::errc() && result.ptr == digits.data() + digits.size())
        return TemplateValue(integer);
    }
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    isNumber = result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  }
  if (name == "float") {
    if (isNumber) return TemplateValue(number);
    return otherwise == nullptr ? TemplateValue(0.0) : *otherwise;
  }
  if (value.asInteger() != nullptr) return value;
  if (!isNumber || !(std::abs(number) < 9e18))
    return otherwise == nullptr ? TemplateValue(int64_t{0}) : *otherwise;
  return TemplateValue(static_cast<int64_t>(number));
}

Result<TemplateValue> filterFirstOrLast(std::string_view name, const TemplateValue& value,
                                        TemplateBudget* budget) {
  if (value.asDictionary() == nullptr && !value.isUndefined()) {
    if (value.asList() == nullptr && value.asText() == nullptr)
      return fail(ErrorCode::kBadData, "The chat template takes an item of {}.", value.kindName());
    return itemOf(value, TemplateValue(int64_t{name == "first" ? 0 : -1}), budget);
  }
  HEARTH_ASSIGN(const Values items, itemsOf(value, budget));
  if (items.empty()) return TemplateValue::undefined("an item of an empty list");
  return name == "first" ? items.front() : items.back();
}

Result<TemplateValue> filterLength(const TemplateValue& value, TemplateBudget* budget) {
  if (const auto* const text = value.asText()) {
    HEARTH_TRY(budget->spend(1 + text->size() / 16));
    return TemplateValue(lengthOfText(*text));
  }
  if (const auto* const list = value.asList())
    return TemplateValue(static_cast<int64_t>(list->items.size()));
  if (const auto* const dictionary = value.asDictionary())
    return TemplateValue(static_cast<int64_t>(dictionary->items.size()));
  if (value.isUndefined()) return TemplateValue(int64_t{0});
  return fail(ErrorCode::kBadData, "The chat template takes the length of {}.", value.kindName());
}

Result<TemplateValue> filterReverse(const TemplateValue& value, TemplateBudget* budget) {
  HEARTH_ASSIGN(Values items, itemsOf(value, budget));
  std::ranges::reverse(items);
  if (value.asText() == nullptr) return budget->list(std::move(items));
  std::string made;
  for (const TemplateValue& item : items) made += *item.asText();
  return budget->text(std::move(made));
}

Result<TemplateValue> filterEscape(const TemplateValue& value, TemplateBudget* budget) {
  HEARTH_ASSIGN(const std::string text, textOfValue(value, budget));
  HEARTH_TRY(budget->allocate(6 * text.size()));
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '\'':
        made += "&#39;";
        break;
      case '"':
        made += "&#34;";
        break;
      default:
        made.push_back(c);
    }
  }
  return TemplateValue(std::move(made));
}

// Jinja's title, which unlike Python's begins a word behind white space and opening brackets only.
std::string titleOfWords(std::string_view text) {
  std::string made = lowerText(text);
  bool isBegin = true;
  for (char& c : made) {
    if (isBegin && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    isBegin = std::string_view("-({[< \t\n\r\f\v").contains(c);
  }
  return made;
}

// Filters of text, which print a value of another kind first; nothing for another name.
Result<std::optional<TemplateValue>> filterText(std::string_view name, const TemplateValue& value,
                                                const Arguments& arguments,
                                                TemplateBudget* budget) {
  if (name == "escape" || name == "e" || name == "forceescape") return filterEscape(value, budget);
  if (name == "indent") return filterIndent(value, arguments, budget);
  if (name != "trim" && name != "lower" && name != "upper" && name != "title" &&
      name != "capitalize" && name != "replace" && name != "string" && name != "safe" &&
      name != "wordcount")
    return std::nullopt;
  HEARTH_ASSIGN(std::string text, textOfValue(value, budget));
  if (name == "trim") return callTextMethod(text, "strip", arguments, budget);
  if (name == "lower" || name == "upper" || name == "capitalize" || name == "replace")
    return callTextMethod(text, name, arguments, budget);
  HEARTH_TRY(budget->spend(1 + text.size() / 8));
  if (name == "title") return budget->text(titleOfWords(text));
  if (name == "wordcount") {
    HEARTH_ASSIGN(const TemplateValue words,
                  callTemplateMethod(TemplateValue(std::move(text)), "split", {}, budget));
    return TemplateValue(static_cast<int64_t>(words.asList()->items.size()));
  }
  return TemplateValue(std::move(text));
}

}  // namespace

Result<TemplateValue> applyTemplateFilter(std::string_view name, const TemplateValue& value,
                                          const TemplateArguments& arguments,
                                          TemplateBudget* budget) {
  HEARTH_TRY(budget->spend(1));
  if (name == "default" || name == "d") {
    HEARTH_ASSIGN(const bool isForFalse, arguments.boolean(1, "boolean", false));
    if (!value.isUndefined() && (value.isTrue() || !isForFalse)) return value;
    const TemplateValue* const otherwise = arguments.find(0, "default_value");
    return otherwise == nullptr ? TemplateValue("") : *otherwise;
  }
  HEARTH_ASSIGN(auto text, filterText(name, value, arguments, budget));
  if (text) return std::move(*text);
  if (name == "tojson") return filterToJson(value, arguments, budget);
  if (name == "length" || name == "count") return filterLength(value, budget);
  if (name == "first" || name == "last") return filterFirstOrLast(name, value, budget);
  if (name == "join") return filterJoin(value, arguments, budget);
  if (name == "map") return filterMap(value, arguments, budget);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return filterSelect(name, value, arguments, budget);
  if (name == "list") {
    HEARTH_ASSIGN(Values items, itemsOf(value, budget));
    return budget->list(std::move(items));
  }
  if (name == "items") {
    if (value.isUndefined()) return budget->list({});
    return callTemplateMethod(value, "items", {}, budget);
  }
  if (name == "dictsort") return filterDictSort(value, arguments, budget);
  if (name == "sort") return filterSort(value, arguments, budget);
  if (name == "unique") return filterUnique(value, arguments, budget);
  if (name == "reverse") return filterReverse(value, budget);
  if (name == "min" || name == "max" || name == "sum")
    return filterReduce(name, value, arguments, budget);
  if (name == "int" || name == "float" || name == "abs" || name == "round")
    return filterNumber(name, value, arguments);
  if (name == "attr") {
    HEARTH_ASSIGN(const TemplateValue key, arguments.needed(0, "name"));
    return itemOf(value, key, budget);
  }
  return fail(ErrorCode::kUnsupported,
              "The chat template has the filter {}, which is not supported.", name);
}

}  // namespace hearth::llm
