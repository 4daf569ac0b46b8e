// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/template_value.h"

namespace hearth::llm {

// Whether a word of a schema says nothing about which values are right.
bool describes(std::string_view word);

// The names in a `type`. Error: kBadData.
Result<std::vector<std::string>> schemaTypes(const TemplateValue& type);

// Counts steps that reading a document takes. Error: kUnsupported above
// SchemaConjunction::kMaxSteps.
Status spendSchemaSteps(size_t count, size_t* steps);

// What several JSON schemas say of one value at once, as the words of one schema. `allOf` and
// `$ref` become part of it; `anyOf` and `oneOf` stay choices.
class SchemaConjunction {
 public:
  // Finds what a `$ref` refers to.
  using Find = std::function<Result<TemplateValue>(const std::string&)>;
  using Words = std::vector<std::pair<std::string, TemplateValue>>;

  struct Choices {
    std::string word;       // `anyOf` or `oneOf`
    TemplateValue schemas;  // a list
  };

  // Steps that all conjunctions of a document take together.
  static constexpr size_t kMaxSteps = size_t{1} << 26;

  // Errors: kBadData for what is no schema, kUnsupported for words that cannot be said as one of
  // their kind, such as two patterns, and where `steps` would be above kMaxSteps.
  Status add(const TemplateValue& schema, const Find& find, size_t* steps);

  // Whether no value is right; false where that has not been noticed.
  bool isNever() const { return isNever_; }
  const Words& words() const { return words_; }
  const std::vector<Choices>& choices() const { return choices_; }
  Choices takeChoices();

 private:
  Status merge(const Words& other, size_t* steps);
  Status mergeProperties(const Words& other, size_t* steps);
  Status mergeWord(const std::string& word, const TemplateValue& value, TemplateValue* own,
                   size_t* steps);
  Status mergeTypes(const TemplateValue& value, TemplateValue* own);
  Status mergeEnums(const TemplateValue& value, TemplateValue* own, size_t* steps);

  Words words_;
  std::vector<Choices> choices_;
  bool isNever_ = false;
};

}  // namespace hearth::llm
