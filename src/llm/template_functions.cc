// SPDX-License-Identifier: Apache-2.0
#include "llm/template_functions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "llm/template_text.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

using Values = std::vector<TemplateValue>;

std::unexpected<Error> cannot(std::string_view what, const TemplateValue& value) {
  return fail(ErrorCode::kBadData, "The chat template {} {}{}.", what, value.kindName(),
              value.isUndefined() ? " (" + value.asUndefined()->name + ")" : "");
}

}  // namespace

Result<std::string> textOfValue(const TemplateValue& value, TemplateBudget* budget) {
  if (const auto* const text = value.asText()) {
    HEARTH_TRY(budget->allocate(text->size()));
    HEARTH_TRY(budget->spend(1 + text->size() / 64));
    return *text;
  }
  HEARTH_TRY(budget->look(value));
  std::string made = printed(value, budget->textLimit());
  HEARTH_TRY(budget->allocate(made.size()));
  return made;
}

Result<bool> areEqualValues(const TemplateValue& left, const TemplateValue& right,
                            TemplateBudget* budget) {
  HEARTH_TRY(budget->spend(1 + std::min(left.weight(), right.weight()) / 8));
  return areEqual(left, right);
}

Result<int> compareValues(const TemplateValue& left, const TemplateValue& right,
                          TemplateBudget* budget) {
  HEARTH_TRY(budget->spend(1 + std::min(left.weight(), right.weight()) / 8));
  if (left.isNumber() && right.isNumber()) {
    const double difference = left.toNumber() - right.toNumber();
    return difference < 0 ? -1 : difference > 0 ? 1 : 0;
  }
  if (left.asText() != nullptr && right.asText() != nullptr)
    return left.asText()->compare(*right.asText());
  if (left.asList() != nullptr && right.asList() != nullptr) {
    const Values& one = left.asList()->items;
    const Values& other = right.asList()->items;
    for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
      HEARTH_ASSIGN(const int order, compareValues(one[i], other[i], budget));
      if (order != 0) return order;
    }
    return static_cast<int>(one.size() > other.size()) -
           static_cast<int>(one.size() < other.size());
  }
  return fail(ErrorCode::kBadData, "The chat template orders {} and {}.", left.kindName(),
              right.kindName());
}

Result<bool> isInValue(const TemplateValue& item, const TemplateValue& container,
                       TemplateBudget* budget) {
  if (const auto* const text = container.asText()) {
    const auto* const word = item.asText();
    if (word == nullptr) return cannot("looks in a string for", item);
    HEARTH_TRY(budget->spend(1 + text->size() / 64 * (1 + word->size())));
    return text->contains(*word);
  }
  if (const auto* const dictionary = container.asDictionary()) {
    HEARTH_TRY(budget->spend(1 + dictionary->items.size()));
    return item.asText() != nullptr && dictionary->find(*item.asText()) != nullptr;
  }
  if (const auto* const list = container.asList()) {
    for (const TemplateValue& one : list->items) {
      HEARTH_ASSIGN(const bool isEqual, areEqualValues(one, item, budget));
      if (isEqual) return true;
    }
    return false;
  }
  if (container.isUndefined()) return false;
  return cannot("looks for a value in", container);
}

Result<std::vector<TemplateValue>> itemsOf(const TemplateValue& value, TemplateBudget* budget) {
  Values items;
  if (const auto* const list = value.asList()) {
    HEARTH_TRY(budget->spend(1 + list->items.size()));
    HEARTH_TRY(budget->allocate(list->items.size() * sizeof(TemplateValue)));
    return list->items;
  }
  if (const auto* const dictionary = value.asDictionary()) {
    HEARTH_TRY(budget->look(value));
    for (const auto& [key, one] : dictionary->items) {
      HEARTH_ASSIGN(TemplateValue item, budget->text(key));
      items.push_back(std::move(item));
    }
    return items;
  }
  if (const auto* const text = value.asText()) {
    HEARTH_TRY(budget->spend(1 + text->size()));
    for (size_t at = 0; at < text->size();) {
      const size_t size = decodeCharacter(*text, at).size;
      HEARTH_ASSIGN(TemplateValue item, budget->text(text->substr(at, size)));
      items.push_back(std::move(item));
      at += size;
    }
    return items;
  }
  if (value.isUndefined()) return items;
  return cannot("goes through", value);
}

Result<TemplateValue> itemOf(const TemplateValue& value, const TemplateValue& key,
                             TemplateBudget* budget) {
  if (const auto* const dictionary = value.asDictionary()) {
    HEARTH_TRY(budget->spend(1 + dictionary->items.size() / 4));
    const std::string* const name = key.asText();
    const TemplateValue* const found = name == nullptr ? nullptr : dictionary->find(*name);
    return found != nullptr ? *found : TemplateValue::undefined(name == nullptr ? "a key" : *name);
  }
  if (value.isUndefined() || value.isNone()) return cannot("takes an item of", value);
  const auto* const number = key.asInteger();
  if (number == nullptr)
    return TemplateValue::undefined(key.asText() != nullptr ? *key.asText() : "an item");
  const auto place = [&](int64_t count) {
    return *number < 0 ? *number + count : *number;
  };
  if (const auto* const list = value.asList()) {
    const int64_t index = place(static_cast<int64_t>(list->items.size()));
    if (index < 0 || index >= static_cast<int64_t>(list->items.size()))
      return TemplateValue::undefined("an item");
    return list->items[static_cast<size_t>(index)];
  }
  if (const auto* const text = value.asText()) {
    HEARTH_TRY(budget->spend(1 + text->size() / 8));
    const int64_t index = place(lengthOfText(*text));
    const std::string_view part =
        index < 0 ? std::string_view() : partOfText(*text, index, index + 1);
    if (part.empty()) return TemplateValue::undefined("a character");
    return budget->text(std::string(part));
  }
  return TemplateValue::undefined("an item");
}

bool isDictionaryMethod(std::string_view name) {
  constexpr std::array<std::string_view, 4> kMethods = {"items", "keys", "values", "get"};
  return std::ranges::find(kMethods, name) != kMethods.end();
}

bool isTextMethod(std::string_view name) {
  constexpr std::string_view kMethods[] = {
      "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
      "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
      "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
      "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
      "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
      "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
      "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
      "swapcase",     "title",       "translate", "upper",      "zfill"};
  return std::ranges::find(kMethods, name) != std::end(kMethods);
}

bool isListMethod(std::string_view name) {
  constexpr std::string_view kMethods[] = {"append", "clear",   "copy",   "count",
                                           "extend", "index",   "insert", "pop",
                                           "remove", "reverse", "sort"};
  return std::ranges::find(kMethods, name) != std::end(kMethods);
}

Result<TemplateValue> callTemplateMethod(const TemplateValue& value, std::string_view name,
                                         const TemplateArguments& arguments,
                                         TemplateBudget* budget) {
  if (const auto* const text = value.asText()) {
    HEARTH_ASSIGN(auto result, callTextMethod(*text, name, arguments, budget));
    if (result) return std::move(*result);
  }
  if (const auto* const dictionary = value.asDictionary()) {
    HEARTH_TRY(budget->spend(1 + dictionary->items.size()));
    if (name == "get") {
      HEARTH_ASSIGN(const TemplateValue key, arguments.needed(0, "key"));
      const TemplateValue* const found =
          key.asText() == nullptr ? nullptr : dictionary->find(*key.asText());
      if (found != nullptr) return *found;
      const TemplateValue* const otherwise = arguments.find(1, "default");
      return otherwise == nullptr ? TemplateValue() : *otherwise;
    }
    if (isDictionaryMethod(name)) {
      Values items;
      for (const auto& [key, one] : dictionary->items) {
        HEARTH_ASSIGN(TemplateValue text, budget->text(key));
        if (name == "keys") {
          items.push_back(std::move(text));
        } else if (name == "values") {
          items.push_back(one);
        } else {
          HEARTH_ASSIGN(TemplateValue pair, budget->list({std::move(text), one}, true));
          items.push_back(std::move(pair));
        }
      }
      return budget->list(std::move(items));
    }
  }
  if (const auto* const list = value.asList();
      list != nullptr && (name == "index" || name == "count")) {
    HEARTH_ASSIGN(const TemplateValue wanted, arguments.needed(0, "value"));
    int64_t count = 0;
    for (size_t i = 0; i < list->items.size(); ++i) {
      HEARTH_ASSIGN(const bool isEqual, areEqualValues(list->items[i], wanted, budget));
      if (isEqual && name == "index") return TemplateValue(static_cast<int64_t>(i));
      count += isEqual ? 1 : 0;
    }
    if (name == "index")
      return fail(ErrorCode::kBadData,
                  "The chat template looks for a value that is not in a list.");
    return TemplateValue(count);
  }
  return fail(ErrorCode::kUnsupported,
              "The chat template calls the method {} of {}, which is not supported.", name,
              value.kindName());
}

Result<bool> applyTemplateTest(std::string_view name, const TemplateValue& value,
                               const TemplateArguments& arguments, TemplateBudget* budget) {
  HEARTH_TRY(budget->spend(1));
  if (name == "defined") return !value.isUndefined();
  if (name == "undefined") return value.isUndefined();
  if (name == "none") return value.isNone();
  if (name == "string") return value.asText() != nullptr;
  if (name == "boolean") return value.asBool() != nullptr;
  if (name == "true") return value.asBool() != nullptr && *value.asBool();
  if (name == "false") return value.asBool() != nullptr && !*value.asBool();
  if (name == "integer") return value.asInteger() != nullptr;
  if (name == "float") return value.asFloat() != nullptr;
  if (name == "number") return value.isNumber();
  if (name == "mapping") return value.asDictionary() != nullptr;
  if (name == "sequence" || name == "iterable")
    return value.asText() != nullptr || value.asList() != nullptr ||
           value.asDictionary() != nullptr || (value.isUndefined() && name == "iterable");
  if (name == "callable") return value.asObject() != nullptr;
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const auto* const number = value.asInteger();
    if (number == nullptr) return cannot("divides", value);
    HEARTH_ASSIGN(const int64_t divisor, arguments.integer(0, "num", 2));
    if (divisor == 0) return fail(ErrorCode::kBadData, "The chat template divides by zero.");
    const bool isEven = divisor == -1 || *number % divisor == 0;
    return name == "odd" ? !isEven : isEven;
  }
  if (name == "lower" || name == "upper") {
    if (value.asText() == nullptr) return false;
    HEARTH_TRY(budget->look(value));
    return name == "lower" ? *value.asText() == lowerText(*value.asText())
                           : *value.asText() == upperText(*value.asText());
  }
  if (name == "sameas" || name == "eq" || name == "equalto" || name == "==" || name == "ne" ||
      name == "!=") {
    HEARTH_ASSIGN(const TemplateValue other, arguments.needed(0, "other"));
    HEARTH_ASSIGN(const bool isEqual, areEqualValues(value, other, budget));
    if (name == "sameas")
      return isEqual && value.isNumber() == other.isNumber() &&
             (value.asBool() == nullptr) == (other.asBool() == nullptr);
    return isEqual != (name == "ne" || name == "!=");
  }
  if (name == "in") {
    HEARTH_ASSIGN(const TemplateValue container, arguments.needed(0, "seq"));
    return isInValue(value, container, budget);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOrders = {
      {{"lt", "<"},
       {"lessthan", "<"},
       {"<", "<"},
       {"le", "<="},
       {"<=", "<="},
       {"gt", ">"},
       {"greaterthan", ">"},
       {">", ">"},
       {"ge", ">="},
       {">=", ">="}}};
  for (const auto& [word, sign] : kOrders) {
    if (word != name) continue;
    HEARTH_ASSIGN(const TemplateValue other, arguments.needed(0, "other"));
    HEARTH_ASSIGN(const int order, compareValues(value, other, budget));
    return sign == "<"    ? order < 0
           : sign == "<=" ? order <= 0
           : sign == ">"  ? order > 0
                          : order >= 0;
  }
  return fail(ErrorCode::kUnsupported, "The chat template has the test {}, which is not supported.",
              name);
}

}  // namespace hearth::llm
