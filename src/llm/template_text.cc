// SPDX-License-Identifier: Apache-2.0
#include "llm/template_text.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "llm/unicode.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr size_t kNowhere = std::string_view::npos;
constexpr int64_t kEverywhere = std::numeric_limits<int64_t>::max();

bool isSmallLetter(char c) {
  return c >= 'a' && c <= 'z';
}
bool isCapitalLetter(char c) {
  return c >= 'A' && c <= 'Z';
}
char toSmall(char c) {
  return isCapitalLetter(c) ? static_cast<char>(c + 32) : c;
}
char toCapital(char c) {
  return isSmallLetter(c) ? static_cast<char>(c - 32) : c;
}
bool isContinuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}

// Python's white space of str: that of Unicode, and four separators.
bool isTextSpace(uint32_t code) {
  return isWhiteSpace(code) || (code >= 0x1C && code <= 0x1F);
}

bool isStripped(std::string_view character, const std::string* characters) {
  if (characters != nullptr) return characters->contains(character);
  return isTextSpace(decodeCharacter(character, 0).code);
}

// A search may look at all of the word at each place.
Status payForSearch(std::string_view text, std::string_view word, TemplateBudget* budget) {
  return budget->spend(1 + text.size() / 64 * (1 + word.size()));
}

using Pieces = std::vector<TemplateValue>;

// At runs of white space.
Pieces splitAtSpace(std::string_view text, int64_t most, bool isFromRight) {
  std::vector<std::string_view> words;
  std::string_view rest = stripText(text, nullptr, true, true);
  while (!rest.empty()) {
    if (static_cast<int64_t>(words.size()) == most) {
      words.push_back(rest);
      break;
    }
    size_t size = 0;
    if (isFromRight) {
      size_t begin = rest.size();
      while (begin > 0) {
        size_t at = begin - 1;
        while (at > 0 && isContinuation(rest[at])) --at;
        if (isTextSpace(decodeCharacter(rest, at).code)) break;
        begin = at;
      }
      words.push_back(rest.substr(begin));
      rest = stripText(rest.substr(0, begin), nullptr, false, true);
      continue;
    }
    while (size < rest.size()) {
      const Character character = decodeCharacter(rest, size);
      if (isTextSpace(character.code)) break;
      size += character.size;
    }
    words.push_back(rest.substr(0, size));
    rest = stripText(rest.substr(size), nullptr, true, false);
  }
  if (isFromRight) std::ranges::reverse(words);
  return {words.begin(), words.end()};
}

Pieces splitAtText(std::string_view text, std::string_view separator, int64_t most,
                   bool isFromRight) {
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  while (static_cast<int64_t>(parts.size()) < most) {
    const size_t at = isFromRight ? rest.rfind(separator) : rest.find(separator);
    if (at == kNowhere) break;
    parts.push_back(isFromRight ? rest.substr(at + separator.size()) : rest.substr(0, at));
    rest = isFromRight ? rest.substr(0, at) : rest.substr(at + separator.size());
  }
  parts.push_back(rest);
  if (isFromRight) std::ranges::reverse(parts);
  return {parts.begin(), parts.end()};
}

Result<TemplateValue> splitText(const std::string& text, std::string_view name,
                                const TemplateArguments& arguments, TemplateBudget* budget) {
  HEARTH_TRY(arguments.check(name, {"sep", "maxsplit"}));
  HEARTH_ASSIGN(const int64_t most, arguments.integer(1, "maxsplit", -1));
  const TemplateValue* const separator = arguments.find(0, "sep");
  const bool isFromRight = name == "rsplit";
  // A piece takes far more memory than the character that it may consist of.
  HEARTH_TRY(budget->spend(text.size()));
  size_t pieces = 1;
  if (separator == nullptr || separator->isNone()) {
    pieces += static_cast<size_t>(
        std::ranges::count_if(text, [](char c) { return c == ' ' || (c >= 9 && c <= 13); }));
  } else if (const std::string* const word = separator->asText();
             word != nullptr && !word->empty()) {
    HEARTH_TRY(payForSearch(text, *word, budget));
    for (size_t at = text.find(*word); at != kNowhere; at = text.find(*word, at + word->size()))
      ++pieces;
  } else {
    return fail(ErrorCode::kBadData, "The chat template splits text at no text.");
  }
  HEARTH_TRY(budget->allocate(text.size() + pieces * 2 * sizeof(TemplateValue)));
  const int64_t limit = most < 0 ? kEverywhere : most;
  const std::string* const word = separator == nullptr ? nullptr : separator->asText();
  return budget->list(word == nullptr ? splitAtSpace(text, limit, isFromRight)
                                      : splitAtText(text, *word, limit, isFromRight));
}

Result<TemplateValue> splitLines(const std::string& text, const TemplateArguments& arguments,
                                 TemplateBudget* budget) {
  HEARTH_ASSIGN(const bool isKept, arguments.boolean(0, "keepends", false));
  const auto lines = static_cast<size_t>(std::ranges::count(text, '\n')) +
                     static_cast<size_t>(std::ranges::count(text, '\r')) + 1;
  HEARTH_TRY(budget->allocate(text.size() + lines * 2 * sizeof(TemplateValue)));
  Pieces pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    size_t next = std::min(end + 1, text.size());
    if (end + 1 < text.size() && text[end] == '\r' && text[end + 1] == '\n') ++next;
    pieces.emplace_back(text.substr(begin, (isKept ? next : end) - begin));
    begin = next;
  }
  return budget->list(std::move(pieces));
}

// startswith and endswith, which also take a tuple.
Result<TemplateValue> hasAffix(const std::string& text, const TemplateArguments& arguments,
                               bool isPrefix, TemplateBudget* budget) {
  HEARTH_ASSIGN(const TemplateValue affix, arguments.needed(0, "prefix"));
  HEARTH_TRY(budget->look(affix));
  const auto matches = [&](const std::string& word) {
    return isPrefix ? text.starts_with(word) : text.ends_with(word);
  };
  if (const auto* const word = affix.asText()) return TemplateValue(matches(*word));
  const ListValue* const list = affix.asList();
  if (list == nullptr || !list->isTuple)
    return fail(ErrorCode::kBadData, "The chat template compares the end of a string with {}.",
                affix.kindName());
  return TemplateValue(std::ranges::any_of(list->items, [&](const TemplateValue& item) {
    return item.asText() != nullptr && matches(*item.asText());
  }));
}

Result<TemplateValue> findText(const std::string& text, std::string_view name,
                               const TemplateArguments& arguments, TemplateBudget* budget) {
  HEARTH_ASSIGN(const std::string word, arguments.text(0, "sub", ""));
  HEARTH_TRY(payForSearch(text, word, budget));
  const size_t at = name.starts_with('r') ? text.rfind(word) : text.find(word);
  if (at != kNowhere) return TemplateValue(lengthOfText(std::string_view(text).substr(0, at)));
  if (name.ends_with("index"))
    return fail(ErrorCode::kBadData, "The chat template looks for text that is not there.");
  return TemplateValue(int64_t{-1});
}

Result<TemplateValue> joinTexts(const std::string& text, const TemplateArguments& arguments,
                                TemplateBudget* budget) {
  HEARTH_ASSIGN(const TemplateValue list, arguments.needed(0, "iterable"));
  HEARTH_TRY(budget->look(list));
  if (list.asList() == nullptr)
    return fail(ErrorCode::kBadData, "The chat template joins {}.", list.kindName());
  const std::vector<TemplateValue>& items = list.asList()->items;
  HEARTH_TRY(budget->spend(1 + items.size() * text.size() / 8));
  HEARTH_TRY(budget->allocate(list.weight() + items.size() * text.size()));
  std::string made;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].asText() == nullptr)
      return fail(ErrorCode::kBadData, "The chat template joins strings with {}.",
                  items[i].kindName());
    if (i > 0) made += text;
    made += *items[i].asText();
  }
  return TemplateValue(std::move(made));
}

// The text before the first (or last) `separator`, that, and the text behind it.
Result<TemplateValue> partitionText(std::string_view text, const TemplateArguments& arguments,
                                    bool isFromRight, TemplateBudget* budget) {
  HEARTH_ASSIGN(const std::string separator, arguments.text(0, "sep", ""));
  if (separator.empty())
    return fail(ErrorCode::kBadData, "The chat template divides a string at an empty one.");
  HEARTH_TRY(payForSearch(text, separator, budget));
  const size_t at = isFromRight ? text.rfind(separator) : text.find(separator);
  const size_t end = at == kNowhere ? text.size() : at + separator.size();
  const std::string_view before = text.substr(0, at);
  const std::string_view behind = text.substr(end);
  HEARTH_TRY(budget->allocate(text.size()));
  const std::string_view middle = at == kNowhere ? std::string_view() : separator;
  if (at == kNowhere && isFromRight) return budget->list({behind, middle, before}, true);
  return budget->list({before, middle, behind}, true);
}

// Fields are {}, {2} or {name}, without attributes, conversions and formats.
Result<TemplateValue> formatText(std::string_view text, const TemplateArguments& arguments,
                                 TemplateBudget* budget) {
  std::string made;
  size_t next = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      made += c;
      continue;
    }
    if (text.substr(at + 1).starts_with(c)) {
      made += c;
      ++at;
      continue;
    }
    const size_t end = c == '{' ? text.find_first_of("{}", at + 1) : kNowhere;
    if (end == kNowhere || text[end] == '{')
      return fail(ErrorCode::kBadData, "The chat template formats a string with a single {}.", c);
    const std::string_view field = text.substr(at + 1, end - at - 1);
    if (field.find_first_of(".[!:") != kNowhere)
      return fail(ErrorCode::kUnsupported,
                  "The chat template formats a string with the field {}, which is not supported.",
                  field);
    size_t position = next;
    const bool isNumber =
        !field.empty() && field.size() < 4 && field.find_first_not_of("0123456789") == kNowhere;
    if (isNumber) position = std::stoul(std::string(field));
    if (field.empty()) ++next;
    HEARTH_ASSIGN(const TemplateValue value,
                  arguments.needed(field.empty() || isNumber ? position : kNowhere, field));
    HEARTH_TRY(budget->look(value));
    std::string part = printed(value, budget->textLimit());
    HEARTH_TRY(budget->allocate(part.size()));
    made += part;
    at = end;
  }
  return budget->text(std::move(made));
}

bool isAll(std::string_view text, Categories categories) {
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    if ((categoryBit(character.code) & categories) == 0) return false;
    at += character.size;
  }
  return !text.empty();
}

// isdigit, isalpha, …; nothing for another name.
std::optional<bool> hasProperty(std::string_view text, std::string_view name) {
  const Categories letters = *categoriesNamed("L");
  const Categories digits = *categoriesNamed("Nd");
  if (name == "isdigit" || name == "isdecimal" || name == "isnumeric") return isAll(text, digits);
  if (name == "isalpha") return isAll(text, letters);
  if (name == "isalnum") return isAll(text, letters | digits);
  if (name == "isspace") return !text.empty() && stripText(text, nullptr, true, true).empty();
  if (name == "isupper") return text != lowerText(text) && text == upperText(text);
  if (name == "islower") return text != upperText(text) && text == lowerText(text);
  return std::nullopt;
}

std::string titleText(std::string_view text) {
  std::string made(text);
  bool isInWord = false;
  for (char& c : made) {
    c = isInWord ? toSmall(c) : toCapital(c);
    isInWord = isSmallLetter(c) || isCapitalLetter(c) || static_cast<uint8_t>(c) >= 0x80;
  }
  return made;
}

std::string capitalizedText(std::string_view text) {
  std::string made = lowerText(text);
  if (!made.empty()) made[0] = toCapital(made[0]);
  return made;
}

// At most `count` times; below 0: everywhere.
Result<std::string> replaceText(std::string_view text, std::string_view old, std::string_view made,
                                int64_t count, TemplateBudget* budget) {
  HEARTH_TRY(payForSearch(text, old, budget));
  HEARTH_TRY(budget->spend(1 + text.size() / 4));
  std::string result;
  size_t at = 0;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    size_t next = old.empty() ? at : text.find(old, at);
    if (old.empty() && i > 0) {
      if (at >= text.size()) break;
      next = at + decodeCharacter(text, at).size;
    }
    if (next == kNowhere) break;
    HEARTH_TRY(budget->spend(1 + made.size() / 8));
    HEARTH_TRY(budget->allocate(made.size()));
    result.append(text, at, next - at);
    result += made;
    at = next + old.size();
    if (old.empty() && text.empty()) break;
  }
  HEARTH_TRY(budget->allocate(text.size()));
  result.append(text, std::min(at, text.size()));
  return result;
}

}  // namespace

std::string_view stripText(std::string_view text, const std::string* characters, bool isLeft,
                           bool isRight) {
  while (isLeft && !text.empty()) {
    const size_t size = decodeCharacter(text, 0).size;
    if (!isStripped(text.substr(0, size), characters)) break;
    text.remove_prefix(size);
  }
  while (isRight && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && isContinuation(text[at])) --at;
    if (!isStripped(text.substr(at), characters)) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

std::string lowerText(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), toSmall);
  return made;
}

std::string upperText(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), toCapital);
  return made;
}

int64_t lengthOfText(std::string_view text) {
  return static_cast<int64_t>(text.size()) - std::ranges::count_if(text, isContinuation);
}

std::string_view partOfText(std::string_view text, int64_t begin, int64_t end) {
  size_t from = text.size();
  size_t to = text.size();
  int64_t number = 0;
  for (size_t at = 0; at < text.size() && number <= end; ++at) {
    if (isContinuation(text[at])) continue;
    if (number == begin) from = at;
    if (number == end) to = at;
    ++number;
  }
  return from < to ? text.substr(from, to - from) : std::string_view();
}

Result<std::optional<TemplateValue>> callTextMethod(const std::string& text, std::string_view name,
                                                    const TemplateArguments& arguments,
                                                    TemplateBudget* budget) {
  HEARTH_TRY(budget->spend(1 + text.size() / 8));
  const auto strip = [&](bool isLeft, bool isRight) -> Result<std::optional<TemplateValue>> {
    HEARTH_TRY(arguments.check(name, {"chars"}));
    HEARTH_ASSIGN(const std::string characters, arguments.text(0, "chars", ""));
    const TemplateValue* const given = arguments.find(0, "chars");
    const bool isGiven = given != nullptr && !given->isNone();
    // Each character of the text is looked for among them.
    HEARTH_TRY(budget->spend(characters.size() * text.size() / 8));
    return budget->text(
        std::string(stripText(text, isGiven ? &characters : nullptr, isLeft, isRight)));
  };
  if (name == "strip") return strip(true, true);
  if (name == "lstrip") return strip(true, false);
  if (name == "rstrip") return strip(false, true);
  if (name == "split" || name == "rsplit") return splitText(text, name, arguments, budget);
  if (name == "splitlines") return splitLines(text, arguments, budget);
  if (name == "startswith" || name == "endswith")
    return hasAffix(text, arguments, name == "startswith", budget);
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex")
    return findText(text, name, arguments, budget);
  if (name == "join") return joinTexts(text, arguments, budget);
  if (name == "partition" || name == "rpartition")
    return partitionText(text, arguments, name == "rpartition", budget);
  if (name == "format") return formatText(text, arguments, budget);
  if (name == "lower" || name == "casefold") return budget->text(lowerText(text));
  if (name == "upper") return budget->text(upperText(text));
  if (name == "title") return budget->text(titleText(text));
  if (name == "capitalize") return budget->text(capitalizedText(text));
  if (name == "replace") {
    HEARTH_ASSIGN(const std::string old, arguments.text(0, "old", ""));
    HEARTH_ASSIGN(const std::string made, arguments.text(1, "new", ""));
    HEARTH_ASSIGN(const int64_t count, arguments.integer(2, "count", -1));
    HEARTH_ASSIGN(std::string replaced, replaceText(text, old, made, count, budget));
    return TemplateValue(std::move(replaced));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    HEARTH_ASSIGN(const std::string affix, arguments.text(0, "prefix", ""));
    std::string_view rest = text;
    if (name == "removeprefix" && rest.starts_with(affix)) rest.remove_prefix(affix.size());
    if (name == "removesuffix" && rest.ends_with(affix)) rest.remove_suffix(affix.size());
    return budget->text(std::string(rest));
  }
  if (name == "count") {
    HEARTH_ASSIGN(const std::string word, arguments.text(0, "sub", ""));
    if (word.empty()) return TemplateValue(lengthOfText(text) + 1);
    HEARTH_TRY(payForSearch(text, word, budget));
    int64_t count = 0;
    for (size_t at = text.find(word); at != kNowhere; at = text.find(word, at + word.size()))
      ++count;
    return TemplateValue(count);
  }
  if (const auto property = hasProperty(text, name)) return TemplateValue(*property);
  return std::nullopt;
}

}  // namespace hearth::llm
