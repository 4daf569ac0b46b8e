// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/schema_conjunction.h"
#include "llm/template_value.h"
#include "llm/text_automaton.h"

namespace hearth::llm {

// Whether values that are there, as those of an `enum`, conform to JSON schemas.
class SchemaConformance {
 public:
  // `find` finds what a `$ref` refers to. `steps` and `budget` are those of the whole document.
  SchemaConformance(SchemaConjunction::Find find, size_t* steps, AutomatonBudget* budget)
      : find_(std::move(find)), steps_(*steps), budget_(*budget) {}

  // Errors: kBadData for what is no schema, kUnsupported for words that are not known, for a value
  // whose `format` is not certain, and where `steps` would be above SchemaConjunction::kMaxSteps.
  Result<bool> conforms(const TemplateValue& value, const TemplateValue& schema);

 private:
  Result<bool> conformsTo(const TemplateValue& value, const TemplateValue& schema);
  Result<bool> conformsToWord(const TemplateValue& value, const std::string& word,
                              const TemplateValue& content, const DictionaryValue& schema);
  Result<bool> conformsToChoice(const TemplateValue& value, std::string_view word,
                                const TemplateValue& schemas);
  Result<bool> areMembersRight(const DictionaryValue& members, const DictionaryValue& schema,
                               bool isOfNamed);
  Result<bool> matches(const std::string& text, const std::string& expression,
                       std::string_view word);

  const SchemaConjunction::Find find_;
  size_t& steps_;
  AutomatonBudget& budget_;
  uint32_t depth_ = 0;
  std::map<std::string, CharacterAutomaton> automata_;  // by their expressions
};

// As JSON Schema compares values: 1 is 1.0, and not true.
bool areSameJson(const TemplateValue& one, const TemplateValue& other);

// Whether a value has one of these types of JSON Schema; all have where there are none.
bool hasSchemaType(const TemplateValue& value, const std::vector<std::string>& types);

}  // namespace hearth::llm
