// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_conformance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "llm/number_automaton.h"
#include "llm/schema_formats.h"
#include "llm/schema_pattern.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr uint32_t kMaxNested = 128;

std::unexpected<Error> wrong(std::string_view word, std::string_view problem) {
  return fail(ErrorCode::kBadData, "The schema has '{}' that {}.", word, problem);
}

// Compares a number with a limit; nothing where it is no number.
Result<bool> isWithin(const TemplateValue& value, std::string_view word,
                      const TemplateValue& content) {
  const auto limitOf = [](const TemplateValue& number) {
    return number.asInteger() != nullptr ? NumberLimit::of(*number.asInteger())
                                         : NumberLimit::of(*number.asFloat());
  };
  const auto isNumber = [](const TemplateValue& number) {
    return number.asInteger() != nullptr || number.asFloat() != nullptr;
  };
  if (!isNumber(content)) return wrong(word, "is no number");
  if (!isNumber(value)) return true;
  const std::strong_ordering order = limitOf(value).compare(limitOf(content));
  if (word == "minimum") return order >= 0;
  if (word == "maximum") return order <= 0;
  return word == "exclusiveMinimum" ? order > 0 : order < 0;
}

size_t charactersOf(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += decodeCharacter(text, at).size) ++count;
  return count;
}

Result<bool> isCounted(const TemplateValue& value, std::string_view word,
                       const TemplateValue& content) {
  if (content.asInteger() == nullptr || *content.asInteger() < 0) return wrong(word, "is no count");
  const auto count = static_cast<size_t>(*content.asInteger());
  size_t own = count;
  if (word.ends_with("Items") && value.asList() != nullptr) own = value.asList()->items.size();
  if (word.ends_with("Length") && value.asText() != nullptr) own = charactersOf(*value.asText());
  return word.starts_with("min") ? own >= count : own <= count;
}

bool isFound(const CharacterAutomaton& automaton, std::string_view text) {
  uint32_t state = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    at += character.size;
    const auto behind = std::ranges::upper_bound(automaton.ranges, character.code, {},
                                                 &CharacterAutomaton::Range::first);
    if (behind == automaton.ranges.begin() || std::prev(behind)->last < character.code)
      return false;
    state = automaton.rows[state].next[std::prev(behind)->kind];
    if (state == CharacterAutomaton::kNowhere) return false;
  }
  return automaton.rows[state].isEnd;
}

}  // namespace

bool areSameJson(const TemplateValue& one, const TemplateValue& other) {
  if ((one.asBool() != nullptr) != (other.asBool() != nullptr)) return false;
  if (one.asList() != nullptr && other.asList() != nullptr)
    return std::ranges::equal(one.asList()->items, other.asList()->items, areSameJson);
  const DictionaryValue* const members = one.asDictionary();
  const DictionaryValue* const others = other.asDictionary();
  if (members == nullptr || others == nullptr) return areEqual(one, other);
  return members->items.size() == others->items.size() &&
         std::ranges::all_of(members->items, [&](const auto& member) {
           const TemplateValue* const found = others->find(member.first);
           return found != nullptr && areSameJson(member.second, *found);
         });
}

bool hasSchemaType(const TemplateValue& value, const std::vector<std::string>& types) {
  if (types.empty()) return true;
  return std::ranges::any_of(types, [&](std::string_view type) {
    if (type == "object") return value.asDictionary() != nullptr;
    if (type == "array") return value.asList() != nullptr;
    if (type == "string") return value.asText() != nullptr;
    if (type == "integer")
      return value.asInteger() != nullptr ||
             (value.asFloat() != nullptr && *value.asFloat() == std::trunc(*value.asFloat()));
    if (type == "number") return value.asInteger() != nullptr || value.asFloat() != nullptr;
    if (type == "boolean") return value.asBool() != nullptr;
    return value.isNone();
  });
}

Result<bool> SchemaConformance::conforms(const TemplateValue& value, const TemplateValue& schema) {
  if (depth_ == kMaxNested)
    return fail(ErrorCode::kUnsupported, "The schema of a listed value nests more than {} deep.",
                kMaxNested);
  ++depth_;
  auto result = conformsTo(value, schema);
  --depth_;
  return result;
}

Result<bool> SchemaConformance::conformsTo(const TemplateValue& value,
                                           const TemplateValue& schema) {
  if (const bool* const truth = schema.asBool()) return *truth;
  const DictionaryValue* const words = schema.asDictionary();
  if (words == nullptr)
    return fail(ErrorCode::kBadData, "The schema has {} where an object is needed.",
                schema.kindName());
  for (const auto& [word, content] : words->items) {
    HEARTH_TRY(spendSchemaSteps(1 + value.weight(), &steps_));
    if (describes(word)) continue;
    HEARTH_ASSIGN(const bool isRight, conformsToWord(value, word, content, *words));
    if (!isRight) return false;
  }
  return true;
}

Result<bool> SchemaConformance::conformsToWord(const TemplateValue& value, const std::string& word,
                                               const TemplateValue& content,
                                               const DictionaryValue& schema) {
  if (word == "type") {
    HEARTH_ASSIGN(const std::vector<std::string> types, schemaTypes(content));
    return hasSchemaType(value, types);
  }
  if (word == "const") return areSameJson(value, content);
  if (word == "enum") {
    if (content.asList() == nullptr) return wrong(word, "is no list");
    HEARTH_TRY(spendSchemaSteps((1 + value.weight()) * content.asList()->items.size(), &steps_));
    return std::ranges::any_of(content.asList()->items,
                               [&](const auto& one) { return areSameJson(value, one); });
  }
  if (word == "minimum" || word == "maximum" || word == "exclusiveMinimum" ||
      word == "exclusiveMaximum")
    return isWithin(value, word, content);
  if (word == "minLength" || word == "maxLength" || word == "minItems" || word == "maxItems")
    return isCounted(value, word, content);
  if (word == "pattern" || word == "format") {
    if (content.asText() == nullptr) return wrong(word, "is no text");
    if (value.asText() == nullptr) return true;
    return matches(*value.asText(), *content.asText(), word);
  }
  if (word == "$ref") {
    if (content.asText() == nullptr) return wrong(word, "is no text");
    HEARTH_ASSIGN(const TemplateValue target, find_(*content.asText()));
    return conforms(value, target);
  }
  if (word == "anyOf" || word == "oneOf" || word == "allOf")
    return conformsToChoice(value, word, content);
  if (word == "items") {
    if (value.asList() == nullptr) return true;
    for (const TemplateValue& item : value.asList()->items) {
      HEARTH_ASSIGN(const bool isRight, conforms(item, content));
      if (!isRight) return false;
    }
    return true;
  }
  const DictionaryValue* const members = value.asDictionary();
  if (word == "required") {
    if (content.asList() == nullptr) return wrong(word, "is no list");
    for (const TemplateValue& name : content.asList()->items) {
      if (name.asText() == nullptr) return wrong(word, "names a property without a text");
      if (members != nullptr && members->find(*name.asText()) == nullptr) return false;
    }
    return true;
  }
  if (word == "properties" || word == "additionalProperties") {
    if (members == nullptr) return true;
    return areMembersRight(*members, schema, word == "properties");
  }
  return fail(ErrorCode::kUnsupported, "The schema has the word '{}', which is not supported.",
              word);
}

Result<bool> SchemaConformance::conformsToChoice(const TemplateValue& value, std::string_view word,
                                                 const TemplateValue& schemas) {
  if (schemas.asList() == nullptr || schemas.asList()->items.empty())
    return wrong(word, "is no list of schemas");
  const std::vector<TemplateValue>& list = schemas.asList()->items;
  size_t right = 0;
  for (const TemplateValue& schema : list) {
    HEARTH_ASSIGN(const bool isRight, conforms(value, schema));
    if (isRight) ++right;
  }
  if (word == "allOf") return right == list.size();
  return word == "anyOf" ? right > 0 : right == 1;
}

// `isOfNamed`: whether those that `properties` names are meant, or the others.
Result<bool> SchemaConformance::areMembersRight(const DictionaryValue& members,
                                                const DictionaryValue& schema, bool isOfNamed) {
  const TemplateValue* const named = schema.find("properties");
  if (named != nullptr && named->asDictionary() == nullptr)
    return wrong("properties", "is no object");
  for (const auto& [name, member] : members.items) {
    if (named != nullptr)
      HEARTH_TRY(spendSchemaSteps(named->asDictionary()->items.size(), &steps_));
    const TemplateValue* own = named != nullptr ? named->asDictionary()->find(name) : nullptr;
    if ((own != nullptr) != isOfNamed) continue;
    if (own == nullptr) own = schema.find("additionalProperties");
    HEARTH_ASSIGN(const bool isRight, conforms(member, *own));
    if (!isRight) return false;
  }
  return true;
}

Result<bool> SchemaConformance::matches(const std::string& text, const std::string& expression,
                                        std::string_view word) {
  const bool isFormat = word == "format";
  const std::string known = isFormat ? expressionOfFormat(expression) : expression;
  if (isFormat && known.empty())
    return fail(ErrorCode::kUnsupported,
                "The schema has the 'format' '{}', which is not supported.", expression);
  auto automaton = automata_.find(known);
  if (automaton == automata_.end()) {
    auto made = patternAutomaton(known, &budget_);
    if (!made)
      return fail(made.error().code(), "The schema has a '{}' that cannot be used: {}.", word,
                  made.error().message());
    automaton = automata_.emplace(known, *std::move(made)).first;
  }
  const bool isRight = isFound(automaton->second, text);
  // The expression of a format lacks some texts of it.
  if (isFormat && !isRight)
    return fail(ErrorCode::kUnsupported,
                "The schema lists '{}', which is not for certain of the 'format' '{}'.", text,
                expression);
  return isRight;
}

}  // namespace hearth::llm
