// SPDX-License-Identifier: Apache-2.0
#include "llm/template_value.h"

#include <algorithm>
#include <map>

namespace hearth::llm {
namespace {

constexpr uint64_t kMaxWeight = uint64_t{1} << 62;
constexpr uint64_t kOwnWeight = 16;

uint64_t addWeights(uint64_t left, uint64_t right) {
  return std::min(left + right, kMaxWeight);
}

std::unexpected<Error> tooDeep() {
  return fail(ErrorCode::kBadData, "The template nests lists more than {} deep.",
              TemplateValue::kMaxDepth);
}

bool areEqualLists(const ListValue& left, const ListValue& right) {
  return left.isTuple == right.isTuple && std::ranges::equal(left.items, right.items, areEqual);
}

bool areEqualDictionaries(const DictionaryValue& left, const DictionaryValue& right) {
  if (left.items.size() != right.items.size()) return false;
  std::map<std::string_view, const TemplateValue*> values;
  for (const auto& [key, value] : right.items) values.emplace(key, &value);
  return std::ranges::all_of(left.items, [&](const auto& item) {
    const auto found = values.find(item.first);
    return found != values.end() && areEqual(item.second, *found->second);
  });
}

}  // namespace

const TemplateValue* DictionaryValue::find(std::string_view key) const {
  const auto found = std::ranges::find(items, key, &std::pair<std::string, TemplateValue>::first);
  return found == items.end() ? nullptr : &found->second;
}

Result<TemplateValue> TemplateValue::list(std::vector<TemplateValue> items, bool isTuple) {
  auto made = std::make_shared<ListValue>();
  made->items = std::move(items);
  made->isTuple = isTuple;
  made->weight = kOwnWeight;
  for (const TemplateValue& item : made->items) {
    made->weight = addWeights(made->weight, item.weight());
    made->depth = std::max(made->depth, item.depth() + 1);
  }
  if (made->depth > kMaxDepth) return tooDeep();
  return TemplateValue(Variant(List(std::move(made))));
}

Result<TemplateValue> TemplateValue::dictionary(
    std::vector<std::pair<std::string, TemplateValue>> items) {
  auto made = std::make_shared<DictionaryValue>();
  std::map<std::string_view, size_t> places;
  // Views of keys stay valid: they are made before anything moves.
  std::vector<size_t> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [place, isNew] = places.emplace(items[i].first, kept.size());
    if (isNew)
      kept.push_back(i);
    else
      items[kept[place->second]].second = items[i].second;
  }
  made->weight = kOwnWeight;
  for (const size_t i : kept) {
    made->weight = addWeights(made->weight, kOwnWeight + items[i].first.size());
    made->weight = addWeights(made->weight, items[i].second.weight());
    made->depth = std::max(made->depth, items[i].second.depth() + 1);
  }
  places.clear();
  for (const size_t i : kept) made->items.push_back(std::move(items[i]));
  if (made->depth > kMaxDepth) return tooDeep();
  return TemplateValue(Variant(Dictionary(std::move(made))));
}

const std::string* TemplateValue::asText() const {
  const auto* const text = std::get_if<Text>(&value_);
  return text == nullptr ? nullptr : text->get();
}

const ListValue* TemplateValue::asList() const {
  const auto* const list = std::get_if<List>(&value_);
  return list == nullptr ? nullptr : list->get();
}

const DictionaryValue* TemplateValue::asDictionary() const {
  const auto* const dictionary = std::get_if<Dictionary>(&value_);
  return dictionary == nullptr ? nullptr : dictionary->get();
}

TemplateValue::Object TemplateValue::asObject() const {
  const auto* const object = std::get_if<Object>(&value_);
  return object == nullptr ? nullptr : *object;
}

double TemplateValue::toNumber() const {
  if (const auto* const integer = asInteger()) return static_cast<double>(*integer);
  if (const auto* const truth = asBool()) return *truth ? 1 : 0;
  const auto* const number = asFloat();
  return number == nullptr ? 0 : *number;
}

bool TemplateValue::isTrue() const {
  if (isUndefined() || isNone()) return false;
  if (isNumber()) return toNumber() != 0;
  if (const auto* const text = asText()) return !text->empty();
  if (const auto* const list = asList()) return !list->items.empty();
  if (const auto* const dictionary = asDictionary()) return !dictionary->items.empty();
  return true;
}

uint64_t TemplateValue::weight() const {
  if (const auto* const text = asText()) return kOwnWeight + text->size();
  if (const auto* const list = asList()) return list->weight;
  if (const auto* const dictionary = asDictionary()) return dictionary->weight;
  return kOwnWeight;
}

uint32_t TemplateValue::depth() const {
  if (const auto* const list = asList()) return list->depth;
  if (const auto* const dictionary = asDictionary()) return dictionary->depth;
  if (const auto* const object = std::get_if<Object>(&value_)) return (*object)->depth;
  return 0;
}

const char* TemplateValue::kindName() const {
  if (isUndefined()) return "undefined";
  if (isNone()) return "none";
  if (asBool() != nullptr) return "a boolean";
  if (asInteger() != nullptr) return "an integer";
  if (asFloat() != nullptr) return "a float";
  if (asText() != nullptr) return "a string";
  if (const auto* const list = asList()) return list->isTuple ? "a tuple" : "a list";
  if (asDictionary() != nullptr) return "a dictionary";
  return "an object";
}

bool areEqual(const TemplateValue& left, const TemplateValue& right) {
  if (left.isNumber() && right.isNumber()) {
    if (left.asFloat() == nullptr && right.asFloat() == nullptr) {
      const auto integer = [](const TemplateValue& value) {
        return value.asBool() != nullptr ? int64_t{*value.asBool()} : *value.asInteger();
      };
      return integer(left) == integer(right);
    }
    return left.toNumber() == right.toNumber();
  }
  if (left.asText() != nullptr && right.asText() != nullptr)
    return *left.asText() == *right.asText();
  if (left.asList() != nullptr && right.asList() != nullptr)
    return areEqualLists(*left.asList(), *right.asList());
  if (left.asDictionary() != nullptr && right.asDictionary() != nullptr)
    return areEqualDictionaries(*left.asDictionary(), *right.asDictionary());
  if (left.asObject() != nullptr || right.asObject() != nullptr)
    return left.asObject() == right.asObject();
  return (left.isNone() && right.isNone()) || (left.isUndefined() && right.isUndefined());
}

}  // namespace hearth::llm
