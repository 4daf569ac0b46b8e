// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_expression.h"

#include <algorithm>
#include <optional>

#include "llm/escape.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

using Kind = SchemaExpression::Kind;

constexpr size_t kMaxBytes = 4096;
constexpr size_t kMaxNesting = 32;
constexpr uint32_t kLastCode = 0x10FFFF;

bool isLetter(uint32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

bool isDigit(uint32_t code) {
  return code >= '0' && code <= '9';
}

CharacterRanges normalized(CharacterRanges ranges) {
  std::ranges::sort(ranges);
  CharacterRanges made;
  for (const auto& [first, last] : ranges) {
    if (!made.empty() && first <= made.back().second + 1)
      made.back().second = std::max(made.back().second, last);
    else
      made.emplace_back(first, last);
  }
  return made;
}

CharacterRanges othersThan(const CharacterRanges& ranges) {
  CharacterRanges made;
  uint32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) made.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCode) made.emplace_back(next, kLastCode);
  return made;
}

const CharacterRanges& lineEnds() {
  static const CharacterRanges ranges = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return ranges;
}

// What \d, \w and \s stand for.
CharacterRanges shorthand(char letter) {
  switch (letter) {
    case 'd':
      return {{'0', '9'}};
    case 'w':
      return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    default:
      return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
              {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
              {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }
}

// By recursive descent.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<SchemaExpression> parse() {
    if (text_.size() > kMaxBytes)
      return fail(ErrorCode::kUnsupported, "it has {} bytes; at most {} are read", text_.size(),
                  kMaxBytes);
    HEARTH_ASSIGN(SchemaExpression whole, choice());
    if (at_ < text_.size()) return wrong("a group is closed that is not open");
    return whole;
  }

 private:
  std::unexpected<Error> wrong(std::string_view problem) const {
    return fail(ErrorCode::kBadData, "it is wrong at byte {}: {}", at_, problem);
  }
  std::unexpected<Error> unsupported(std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "{} at byte {} is not supported", what, at_);
  }
  bool isAt(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool take(std::string_view word) {
    if (!isAt(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<SchemaExpression> choice() {
    if (++nesting_ > kMaxNesting) return wrong("it nests too deeply");
    SchemaExpression made{.kind = Kind::kChoice};
    do {
      HEARTH_ASSIGN(SchemaExpression part, sequence());
      made.parts.push_back(std::move(part));
    } while (take("|"));
    --nesting_;
    if (made.parts.size() > 1) return made;
    SchemaExpression only = std::move(made.parts.front());
    return only;
  }

  Result<SchemaExpression> sequence() {
    SchemaExpression made;
    while (at_ < text_.size() && !isAt("|") && !isAt(")")) {
      HEARTH_ASSIGN(SchemaExpression part, repeated());
      made.parts.push_back(std::move(part));
    }
    return made;
  }

  // One item and how often it occurs.
  Result<SchemaExpression> repeated() {
    if (take("^")) return SchemaExpression{.kind = Kind::kBegin};
    if (take("$")) return SchemaExpression{.kind = Kind::kEnd};
    HEARTH_ASSIGN(SchemaExpression item, this->item());
    SchemaExpression made{.kind = Kind::kRepeat, .least = 1, .most = 1};
    if (take("*")) {
      made.least = 0;
      made.most = SchemaExpression::kUnlimited;
    } else if (take("+")) {
      made.most = SchemaExpression::kUnlimited;
    } else if (take("?")) {
      made.least = 0;
    } else if (take("{")) {
      HEARTH_TRY(counts(&made));
    } else {
      return item;
    }
    // As few as possible: which texts there are is the same.
    take("?");
    made.parts.push_back(std::move(item));
    return made;
  }

  Status counts(SchemaExpression* repeat) {
    const std::optional<uint32_t> least = number();
    if (!least) return wrong("a repetition needs a number behind its brace");
    repeat->least = repeat->most = *least;
    if (take(",")) repeat->most = number().value_or(SchemaExpression::kUnlimited);
    if (!take("}")) return wrong("a repetition is not closed");
    if (repeat->most < repeat->least) return wrong("a repetition has a most below its least");
    if (repeat->least > SchemaExpression::kMaxCount ||
        (repeat->most > SchemaExpression::kMaxCount &&
         repeat->most != SchemaExpression::kUnlimited))
      return unsupported("a repetition of more than 1000");
    return {};
  }

  std::optional<uint32_t> number() {
    std::optional<uint32_t> value;
    while (at_ < text_.size() && isDigit(static_cast<uint8_t>(text_[at_])))
      value = std::min(value.value_or(0) * 10 + static_cast<uint32_t>(text_[at_++] - '0'),
                       SchemaExpression::kMaxCount + 1);
    return value;
  }

  Result<SchemaExpression> item() {
    if (take("(")) return group();
    SchemaExpression made{.kind = Kind::kSet};
    if (take(".")) {
      made.set = othersThan(lineEnds());
    } else if (take("[")) {
      HEARTH_ASSIGN(made.set, characterClass());
    } else if (isAt("*") || isAt("+") || isAt("?") || isAt("{")) {
      return wrong("nothing stands before a repetition");
    } else if (isAt("\\b") || isAt("\\B")) {
      return unsupported("a border of words");
    } else {
      HEARTH_ASSIGN(made.set, member());
    }
    return made;
  }

  Result<SchemaExpression> group() {
    if (isAt("?=") || isAt("?!") || isAt("?<=") || isAt("?<!"))
      return unsupported("a look ahead or behind");
    if (take("?<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return wrong("the name of a group is not closed");
      at_ = end + 1;
    } else if (isAt("?") && !take("?:")) {
      return unsupported("a group of this kind");
    }
    HEARTH_ASSIGN(SchemaExpression made, choice());
    if (!take(")")) return wrong("a group is not closed");
    return made;
  }

  // The rest of a class behind its bracket.
  Result<CharacterRanges> characterClass() {
    const bool isNegated = take("^");
    // Here languages differ: it has no characters, or this bracket.
    if (isAt("]")) return unsupported("a class that begins with its closing bracket");
    CharacterRanges ranges;
    while (!take("]")) {
      if (at_ == text_.size()) return wrong("a class of characters is not closed");
      const bool isBackspace = isAt("\\b");
      if (isBackspace) at_ += 2;
      HEARTH_ASSIGN(CharacterRanges from,
                    isBackspace ? Result<CharacterRanges>({{'\b', '\b'}}) : member());
      if (isAt("-") && !isAt("-]")) {
        take("-");
        if (at_ == text_.size()) return wrong("a class of characters is not closed");
        HEARTH_ASSIGN(const CharacterRanges to, member());
        if (!isOne(from) || !isOne(to)) return wrong("a range needs a character at both ends");
        if (to.front().first < from.front().first)
          return wrong("a range of characters runs backwards");
        from.front().second = to.front().first;
      }
      ranges.insert(ranges.end(), from.begin(), from.end());
    }
    ranges = normalized(std::move(ranges));
    return isNegated ? othersThan(ranges) : ranges;
  }

  static bool isOne(const CharacterRanges& ranges) {
    return ranges.size() == 1 && ranges.front().first == ranges.front().second;
  }

  // A character, or what an escape stands for.
  Result<CharacterRanges> member() {
    const Character found = decodeCharacter(text_, at_);
    at_ += found.size;
    if (!found.isValid) return wrong("it is no UTF-8");
    if (found.code != '\\') return CharacterRanges{{found.code, found.code}};
    if (at_ == text_.size()) return wrong("it ends with a backslash");
    const char letter = text_[at_];
    for (const char known : {'d', 'w', 's'}) {
      if (letter != known && (letter | 0x20) != known) continue;
      ++at_;
      return letter == known ? shorthand(known) : othersThan(shorthand(known));
    }
    HEARTH_ASSIGN(const uint32_t code, escaped());
    return CharacterRanges{{code, code}};
  }

  // The character that an escape names, behind the backslash.
  Result<uint32_t> escaped() {
    const Character found = decodeCharacter(text_, at_);
    if (!isLetter(found.code) && !isDigit(found.code)) {
      at_ += found.size;
      if (!found.isValid) return wrong("it is no UTF-8");
      return found.code;
    }
    ++at_;
    if (const auto control = controlCharacter(found.code)) return *control;
    switch (found.code) {
      case '0':
        if (at_ == text_.size() || !isDigit(static_cast<uint8_t>(text_[at_]))) return 0;
        break;
      case 'x':
        return hexadecimal(2);
      case 'u':
        return unicode();
      case 'p':
      case 'P':
        --at_;
        return unsupported("a property of Unicode");
      default:
        break;
    }
    --at_;
    return unsupported("an escape of this kind");
  }

  Result<uint32_t> unicode() {
    if (take("{")) {
      const size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) return wrong("the number of a character is not closed");
      HEARTH_ASSIGN(const uint32_t code, hexadecimal(end - at_));
      take("}");
      return code;
    }
    HEARTH_ASSIGN(const uint32_t code, hexadecimal(4));
    if (code < 0xD800 || code > 0xDBFF || !take("\\u")) return code;
    HEARTH_ASSIGN(const uint32_t low, hexadecimal(4));
    if (low < 0xDC00 || low > 0xDFFF) return wrong("half of a pair of surrogates is missing");
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }

  Result<uint32_t> hexadecimal(size_t count) {
    const std::string_view digits = text_.substr(at_, count);
    const std::optional<uint32_t> code = numberOfCharacter(digits);
    if (!code || digits.size() != count)
      return wrong("the number of a character lacks hexadecimal digits, or is above 10FFFF");
    at_ += count;
    return *code;
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t nesting_ = 0;
};

}  // namespace

Result<SchemaExpression> parseSchemaExpression(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace hearth::llm
