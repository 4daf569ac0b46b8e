// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_conjunction.h"

#include <algorithm>
#include <array>

#include "llm/number_automaton.h"
#include "llm/schema_conformance.h"

namespace hearth::llm {
namespace {

using Words = SchemaConjunction::Words;

constexpr size_t kStepsOfSchema = 256;

constexpr std::array<std::string_view, 14> kDescribing = {
    "title", "description", "default",   "examples",     "$schema",
    "$id",   "$comment",    "$anchor",   "readOnly",     "deprecated",
    "$defs", "definitions", "writeOnly", "discriminator"};

constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};

// Of these the larger number counts, and of the others the smaller one.
constexpr std::array<std::string_view, 4> kLeast = {"minItems", "minLength", "minimum",
                                                    "exclusiveMinimum"};
constexpr std::array<std::string_view, 4> kMost = {"maxItems", "maxLength", "maximum",
                                                   "exclusiveMaximum"};

template <typename List>
auto* findWord(List& words, std::string_view word) {
  const auto found = std::ranges::find(words, word, &Words::value_type::first);
  return found != words.end() ? &found->second : nullptr;
}

bool isFalse(const TemplateValue* value) {
  return value != nullptr && value->asBool() != nullptr && !*value->asBool();
}

// The place that a schema refers to without saying more; null where it is another schema.
const std::string* placeOf(const TemplateValue& schema) {
  const DictionaryValue* const words = schema.asDictionary();
  if (words == nullptr || words->items.size() != 1 || words->items[0].first != "$ref")
    return nullptr;
  return words->items[0].second.asText();
}

// A schema of what conforms to both; null is any value.
Result<TemplateValue> both(const TemplateValue* one, const TemplateValue* other) {
  if (one == nullptr || isFalse(other)) return *other;
  if (other == nullptr || isFalse(one)) return *one;
  if (one->asBool() != nullptr) return *other;
  if (other->asBool() != nullptr) return *one;
  const std::string* const place = placeOf(*one);
  const std::string* const otherPlace = placeOf(*other);
  if (place != nullptr && otherPlace != nullptr && *place == *otherPlace) return *one;
  HEARTH_ASSIGN(TemplateValue list, TemplateValue::list({*one, *other}));
  return TemplateValue::dictionary({{"allOf", std::move(list)}});
}

Result<const ListValue*> listOf(std::string_view word, const TemplateValue& value) {
  if (value.asList() != nullptr) return value.asList();
  return fail(ErrorCode::kBadData, "The schema has '{}' without a list.", word);
}

Result<const DictionaryValue*> propertiesOf(const Words& words) {
  const TemplateValue* const value = findWord(words, "properties");
  if (value == nullptr || value->asDictionary() != nullptr)
    return value != nullptr ? value->asDictionary() : nullptr;
  return fail(ErrorCode::kBadData, "The schema has 'properties' that are no object.");
}

Result<NumberLimit> limitOf(std::string_view word, const TemplateValue& value) {
  if (value.asInteger() != nullptr) return NumberLimit::of(*value.asInteger());
  if (value.asFloat() != nullptr) return NumberLimit::of(*value.asFloat());
  return fail(ErrorCode::kBadData, "The schema has '{}' that is no number.", word);
}

}  // namespace

Status spendSchemaSteps(size_t count, size_t* steps) {
  *steps += std::min(count, SchemaConjunction::kMaxSteps);
  if (*steps <= SchemaConjunction::kMaxSteps) return {};
  return fail(ErrorCode::kUnsupported,
              "The schema has too many schemas that a value has to conform to at once.");
}

bool describes(std::string_view word) {
  return std::ranges::contains(kDescribing, word);
}

Result<std::vector<std::string>> schemaTypes(const TemplateValue& type) {
  std::vector<std::string> types;
  const ListValue* const list = type.asList();
  const std::vector<TemplateValue> one = {type};
  for (const TemplateValue& item : list != nullptr ? list->items : one) {
    const std::string* const name = item.asText();
    if (name == nullptr || !std::ranges::contains(kTypes, std::string_view(*name)))
      return fail(ErrorCode::kBadData, "The schema has a `type` that JSON does not have.");
    types.push_back(*name);
  }
  if (types.empty()) return fail(ErrorCode::kBadData, "The schema has an empty list as `type`.");
  return types;
}

Status SchemaConjunction::add(const TemplateValue& schema, const Find& find, size_t* steps) {
  // The next one is the last.
  std::vector<TemplateValue> open = {schema};
  while (!open.empty()) {
    const TemplateValue value = std::move(open.back());
    open.pop_back();
    HEARTH_TRY(spendSchemaSteps(kStepsOfSchema, steps));
    if (value.asBool() != nullptr) {
      isNever_ |= isFalse(&value);
      continue;
    }
    const DictionaryValue* const words = value.asDictionary();
    if (words == nullptr)
      return fail(ErrorCode::kBadData, "The schema has {} where an object is needed.",
                  value.kindName());
    HEARTH_TRY(spendSchemaSteps(words->items.size(), steps));
    Words own;
    std::vector<TemplateValue> parts;
    for (const auto& [word, content] : words->items) {
      if (describes(word)) continue;
      if (word == "$ref") {
        if (content.asText() == nullptr)
          return fail(ErrorCode::kBadData, "The schema has a $ref that is no text.");
        HEARTH_ASSIGN(TemplateValue target, find(*content.asText()));
        parts.push_back(std::move(target));
      } else if (word == "allOf" || word == "anyOf" || word == "oneOf") {
        HEARTH_ASSIGN(const ListValue* const list, listOf(word, content));
        if (list->items.empty())
          return fail(ErrorCode::kBadData, "The schema has '{}' without a schema.", word);
        HEARTH_TRY(spendSchemaSteps(list->items.size(), steps));
        if (word == "allOf")
          parts.insert(parts.end(), list->items.begin(), list->items.end());
        else
          choices_.push_back({word, content});
      } else if (word == "const") {
        HEARTH_ASSIGN(TemplateValue list, TemplateValue::list({content}));
        HEARTH_TRY(merge({{"enum", std::move(list)}}, steps));
      } else {
        own.emplace_back(word, content);
      }
    }
    HEARTH_TRY(merge(own, steps));
    open.insert(open.end(), parts.rbegin(), parts.rend());
  }
  return {};
}

SchemaConjunction::Choices SchemaConjunction::takeChoices() {
  Choices first = std::move(choices_.front());
  choices_.erase(choices_.begin());
  return first;
}

Status SchemaConjunction::merge(const Words& other, size_t* steps) {
  HEARTH_TRY(spendSchemaSteps(words_.size() * other.size(), steps));
  HEARTH_TRY(mergeProperties(other, steps));
  for (const auto& [word, value] : other) {
    if (word == "properties" || word == "additionalProperties") continue;
    if (TemplateValue* const own = findWord(words_, word))
      HEARTH_TRY(mergeWord(word, value, own, steps));
    else
      words_.emplace_back(word, value);
  }
  return {};
}

// What `additionalProperties` of one side say of the properties that only the other side has.
Status SchemaConjunction::mergeProperties(const Words& other, size_t* steps) {
  HEARTH_ASSIGN(const DictionaryValue* const own, propertiesOf(words_));
  HEARTH_ASSIGN(const DictionaryValue* const added, propertiesOf(other));
  const TemplateValue* const ownRest = findWord(words_, "additionalProperties");
  const TemplateValue* const addedRest = findWord(other, "additionalProperties");
  if (added == nullptr && addedRest == nullptr) return {};
  HEARTH_TRY(spendSchemaSteps(
      (own != nullptr ? own->items.size() : 0) * (added != nullptr ? added->items.size() : 0),
      steps));
  Words made;
  const auto join = [&](const DictionaryValue* from, const DictionaryValue* beside,
                        const TemplateValue* rest, bool isFirst) -> Status {
    if (from == nullptr) return {};
    HEARTH_TRY(spendSchemaSteps(from->items.size(), steps));
    for (const auto& [name, value] : from->items) {
      const TemplateValue* const twin = beside != nullptr ? beside->find(name) : nullptr;
      if (twin != nullptr && !isFirst) continue;
      if (twin == nullptr && isFalse(rest)) continue;
      HEARTH_ASSIGN(TemplateValue joined, both(&value, twin != nullptr ? twin : rest));
      made.emplace_back(name, std::move(joined));
    }
    return {};
  };
  HEARTH_TRY(join(own, added, addedRest, true));
  HEARTH_TRY(join(added, own, ownRest, false));
  Words joined;
  if (own != nullptr || added != nullptr) {
    HEARTH_ASSIGN(TemplateValue properties, TemplateValue::dictionary(std::move(made)));
    joined.emplace_back("properties", std::move(properties));
  }
  if (ownRest != nullptr || addedRest != nullptr) {
    HEARTH_ASSIGN(TemplateValue rest, both(ownRest, addedRest));
    joined.emplace_back("additionalProperties", std::move(rest));
  }
  std::erase_if(words_, [&](const auto& word) { return findWord(joined, word.first) != nullptr; });
  std::ranges::move(joined, std::back_inserter(words_));
  return {};
}

Status SchemaConjunction::mergeWord(const std::string& word, const TemplateValue& value,
                                    TemplateValue* own, size_t* steps) {
  if (word == "type") return mergeTypes(value, own);
  if (word == "enum") return mergeEnums(value, own, steps);
  if (word == "items") {
    HEARTH_ASSIGN(*own, both(own, &value));
    return {};
  }
  if (word == "required") {
    HEARTH_ASSIGN(const ListValue* const names, listOf(word, *own));
    HEARTH_ASSIGN(const ListValue* const more, listOf(word, value));
    HEARTH_TRY(spendSchemaSteps(names->items.size() + more->items.size(), steps));
    std::vector<TemplateValue> all = names->items;
    all.insert(all.end(), more->items.begin(), more->items.end());
    HEARTH_ASSIGN(*own, TemplateValue::list(std::move(all)));
    return {};
  }
  const bool isLeast = std::ranges::contains(kLeast, word);
  if (isLeast || std::ranges::contains(kMost, word)) {
    HEARTH_ASSIGN(const NumberLimit limit, limitOf(word, *own));
    HEARTH_ASSIGN(const NumberLimit other, limitOf(word, value));
    if ((other.compare(limit) > 0) == isLeast) *own = TemplateValue(value);
    return {};
  }
  const std::string* const text = own->asText();
  if (text != nullptr && value.asText() != nullptr && *text == *value.asText()) return {};
  return fail(ErrorCode::kUnsupported,
              "The schema has '{}' twice for one value, which is not supported.", word);
}

Status SchemaConjunction::mergeTypes(const TemplateValue& value, TemplateValue* own) {
  HEARTH_ASSIGN(const std::vector<std::string> types, schemaTypes(*own));
  HEARTH_ASSIGN(const std::vector<std::string> others, schemaTypes(value));
  std::vector<TemplateValue> common;
  for (const std::string_view type : kTypes) {
    // Integers are numbers.
    const auto has = [&](const std::vector<std::string>& list) {
      return std::ranges::contains(list, type) ||
             (type == "integer" && std::ranges::contains(list, "number"));
    };
    const bool isSaid = std::ranges::contains(types, type) || std::ranges::contains(others, type);
    if (isSaid && has(types) && has(others)) common.emplace_back(type);
  }
  isNever_ |= common.empty();
  if (!common.empty()) {
    HEARTH_ASSIGN(*own, TemplateValue::list(std::move(common)));
  }
  return {};
}

Status SchemaConjunction::mergeEnums(const TemplateValue& value, TemplateValue* own,
                                     size_t* steps) {
  HEARTH_ASSIGN(const ListValue* const list, listOf("enum", *own));
  HEARTH_ASSIGN(const ListValue* const others, listOf("enum", value));
  std::vector<TemplateValue> common;
  for (const TemplateValue& item : list->items) {
    HEARTH_TRY(spendSchemaSteps((1 + item.weight()) * others->items.size(), steps));
    if (std::ranges::any_of(others->items, [&](const auto& one) { return areSameJson(item, one); }))
      common.push_back(item);
  }
  isNever_ |= common.empty();
  HEARTH_ASSIGN(*own, TemplateValue::list(std::move(common)));
  return {};
}

}  // namespace hearth::llm
