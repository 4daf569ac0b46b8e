// SPDX-License-Identifier: Apache-2.0
#include "llm/template_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

using TokenKind = TemplateToken::Kind;

constexpr size_t kMaxTemplateSource = size_t{1} << 20;

constexpr std::array<std::string_view, 25> kOperators = {
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
    ">",  "=",  ".",  ",",  ":",  "|",  "(", ")", "[", "]", "{", "}"};

bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || isDigit(c) ||
         static_cast<uint8_t>(c) >= 0x80;
}

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string source) : source_(std::move(source)), text_(source_) {}

  Result<std::vector<TemplateToken>> read() {
    while (at_ < text_.size()) HEARTH_TRY(readOutside());
    addToken(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view problem) const {
    return fail(ErrorCode::kBadData, "The chat template is wrong in line {}: {}.", line(), problem);
  }
  uint32_t line() const { return line_; }
  bool isAt(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  void advance(size_t count) {
    line_ += static_cast<uint32_t>(std::ranges::count(text_.substr(at_, count), '\n'));
    at_ += count;
  }
  bool take(std::string_view word) {
    if (!isAt(word)) return false;
    advance(word.size());
    return true;
  }
  TemplateToken& addToken(TokenKind kind, std::string text = {}) {
    TemplateToken& token = tokens_.emplace_back();
    token.kind = kind;
    token.text = std::move(text);
    token.line = line();
    return token;
  }

  // Text up to the next tag, and that tag.
  Status readOutside() {
    size_t begin = at_;
    size_t tag = text_.find('{', begin);
    while (tag != std::string_view::npos &&
           (tag + 1 == text_.size() || !std::string_view("{%#").contains(text_[tag + 1])))
      tag = text_.find('{', tag + 1);
    if (tag == std::string_view::npos) {
      addText(text_.substr(begin));
      advance(text_.size() - begin);
      return {};
    }
    const char kind = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
    const bool hasSign = sign == '-' || sign == '+';
    addText(beforeTag(text_.substr(begin, tag - begin), kind, sign));
    advance(tag + 2 + (hasSign ? 1 : 0) - begin);
    if (kind == '#') return skipComment();
    if (kind == '{') {
      addToken(TokenKind::kPrintBegin);
      return readInside("}}", TokenKind::kPrintEnd);
    }
    if (const size_t inside = rawBlock(); inside != 0) return readRaw(inside);
    addToken(TokenKind::kBlockBegin);
    return readInside("%}", TokenKind::kBlockEnd);
  }

  void addText(std::string_view text) {
    if (!text.empty()) addToken(TokenKind::kText, std::string(text));
  }

  std::string_view beforeTag(std::string_view text, char kind, char sign) const {
    if (sign == '-') {
      while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
      return text;
    }
    if (sign == '+' || kind == '{') return text;
    const size_t lineBegin = text.rfind('\n') + 1;  // 0 where there is none
    if (lineBegin == 0 && !isLineBegin_) return text;
    const std::string_view last = text.substr(lineBegin);
    return std::ranges::all_of(last, isSpace) ? text.substr(0, lineBegin) : text;
  }

  // What follows a tag that ends with `sign` before its bracket.
  void endTag(char sign, bool isPrint) {
    isLineBegin_ = false;
    const size_t begin = at_;
    if (sign == '-') {
      while (at_ < text_.size() && isSpace(text_[at_])) advance(1);
    } else if (!isPrint && sign != '+') {
      take("\n");
    }
    isLineBegin_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  // Takes the end of a tag, with its sign; returns whether it is there.
  bool takeEnd(std::string_view bracket, bool isPrint) {
    for (const std::string_view sign : {"-", "+", ""}) {
      if (sign == "+" && isPrint) continue;
      if (!isAt(sign) || !text_.substr(at_ + sign.size()).starts_with(bracket)) continue;
      advance(sign.size() + bracket.size());
      endTag(sign.empty() ? ' ' : sign[0], isPrint);
      return true;
    }
    return false;
  }

  Status skipComment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string_view::npos) return wrong("a comment is not closed");
    const char sign = end > at_ ? text_[end - 1] : ' ';
    advance(end + 2 - at_);
    endTag(sign, false);
    return {};
  }

  // Where the text of {% raw %} begins; 0 for another block.
  size_t rawBlock() const {
    size_t at = at_;
    const auto skip = [&] {
      while (at < text_.size() && isSpace(text_[at])) ++at;
    };
    skip();
    if (!text_.substr(at).starts_with("raw")) return 0;
    at += 3;
    skip();
    if (at < text_.size() && text_[at] == '-') ++at;
    return text_.substr(at).starts_with("%}") ? at + 2 : 0;
  }

  Status readRaw(size_t inside) {
    const bool isTrimmed = text_[inside - 3] == '-';
    advance(inside - at_);
    endTag(isTrimmed ? '-' : ' ', false);
    for (size_t tag = text_.find("{%", at_); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 2)) {
      size_t at = tag + 2;
      const char sign = at < text_.size() ? text_[at] : ' ';
      if (sign == '-' || sign == '+') ++at;
      while (at < text_.size() && isSpace(text_[at])) ++at;
      if (!text_.substr(at).starts_with("endraw")) continue;
      at += 6;
      while (at < text_.size() && isSpace(text_[at])) ++at;
      const std::string_view rest = text_.substr(at);
      if (!rest.starts_with("%}") && !rest.starts_with("-%}") && !rest.starts_with("+%}")) continue;
      addText(beforeTag(text_.substr(at_, tag - at_), '%', sign));
      advance(at - at_);
      takeEnd("%}", false);
      return {};
    }
    return wrong("a raw block is not closed");
  }

  Status readInside(std::string_view bracket, TokenKind end) {
    // Brackets that are open: a dictionary may end just before the tag does.
    std::string open;
    for (;;) {
      while (at_ < text_.size() && isSpace(text_[at_])) advance(1);
      if (at_ == text_.size()) return wrong("a tag is not closed");
      if (open.empty() && takeEnd(bracket, end == TokenKind::kPrintEnd)) {
        addToken(end);
        return {};
      }
      const char c = text_[at_];
      if (isDigit(c)) {
        HEARTH_TRY(readNumber());
      } else if (isOfName(c)) {
        size_t size = 1;
        while (at_ + size < text_.size() && isOfName(text_[at_ + size])) ++size;
        addToken(TokenKind::kName, std::string(text_.substr(at_, size)));
        advance(size);
      } else if (c == '"' || c == '\'') {
        HEARTH_TRY(readString(c));
      } else {
        HEARTH_TRY(readOperator(&open));
      }
    }
  }

  Status readOperator(std::string* open) {
    const auto found =
        std::ranges::find_if(kOperators, [&](std::string_view word) { return isAt(word); });
    if (found == kOperators.end()) return wrong("a character is not expected here");
    const char c = (*found)[0];
    if (std::string_view("([{").contains(c)) {
      open->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (std::string_view(")]}").contains(c)) {
      if (open->empty() || open->back() != c) return wrong("a bracket is not expected here");
      open->pop_back();
    }
    addToken(TokenKind::kOperator, std::string(*found));
    advance(found->size());
    return {};
  }

  Status readNumber() {
    std::string digits;
    size_t size = 0;
    bool isFloat = false;
    const auto next = [&](size_t ahead = 0) {
      return at_ + size + ahead < text_.size() ? text_[at_ + size + ahead] : ' ';
    };
    const auto takeDigits = [&] {
      while (isDigit(next()) || (next() == '_' && isDigit(next(1)))) {
        if (next() != '_') digits.push_back(next());
        ++size;
      }
    };
    takeDigits();
    if (next() == '.' && isDigit(next(1))) {
      isFloat = true;
      digits.push_back('.');
      ++size;
      takeDigits();
    }
    const bool hasSign = next(1) == '+' || next(1) == '-';
    if ((next() == 'e' || next() == 'E') && isDigit(next(hasSign ? 2 : 1))) {
      isFloat = true;
      digits += 'e';
      if (next(1) == '-') digits += '-';
      size += hasSign ? 2 : 1;
      takeDigits();
    }
    TemplateToken& token = addToken(isFloat ? TokenKind::kFloat : TokenKind::kInteger, digits);
    const char* const end = digits.data() + digits.size();
    const auto result = isFloat ? std::from_chars(digits.data(), end, token.number)
                                : std::from_chars(digits.data(), end, token.integer);
    if (result.ec != std::errc()) return wrong("a number is too large");
    advance(size);
    return {};
  }

  Status readString(char quote) {
    std::string value;
    advance(1);
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        const size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\') advance(1);
        value += text_.substr(begin, at_ - begin);
        continue;
      }
      advance(1);
      if (at_ == text_.size()) break;
      HEARTH_TRY(readEscape(&value));
    }
    if (!take(std::string_view(&quote, 1))) return wrong("a string is not closed");
    addToken(TokenKind::kString, std::move(value));
    return {};
  }

  Status readEscape(std::string* value) {
    const char c = text_[at_];
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
      value->push_back(kMeanings[which]);
      advance(1);
      return {};
    }
    if (c == '\n') return advance(1), Status();
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      // Python keeps the backslash of an escape that it does not know.
      value->push_back('\\');
      return {};
    }
    uint32_t code = 0;
    const std::string_view text = text_.substr(at_ + 1, digits);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    if (text.size() != digits || end != text.data() + digits || problem != std::errc() ||
        code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return wrong("an escape of a string is wrong");
    appendCharacter(code, value);
    advance(1 + digits);
    return {};
  }

  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool isLineBegin_ = true;
  std::vector<TemplateToken> tokens_;
};

}  // namespace

Result<std::vector<TemplateToken>> readTemplateTokens(std::string_view source) {
  if (source.size() > kMaxTemplateSource)
    return fail(ErrorCode::kBadData, "The chat template has {} bytes; at most {} are read.",
                source.size(), kMaxTemplateSource);
  if (findInvalidUtf8(source) != std::string_view::npos)
    return fail(ErrorCode::kBadData, "The chat template is no UTF-8.");
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      continue;
    }
    text.push_back(source[i]);
  }
  if (text.ends_with('\n')) text.pop_back();
  return TemplateLexer(std::move(text)).read();
}

}  // namespace hearth::llm
