// SPDX-License-Identifier: Apache-2.0
#include "llm/json_reader.h"

#include <charconv>
#include <cmath>

#include "llm/utf8.h"

namespace hearth::llm {

std::unexpected<Error> JsonReader::wrong(std::string_view problem) const {
  return fail(ErrorCode::kBadData, "The JSON text is wrong at byte {}: {}.", at_, problem);
}

void JsonReader::skipSpace() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool JsonReader::take(char c) {
  skipSpace();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

Status JsonReader::takeWord(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return wrong("a value is expected");
  at_ += word.size();
  return {};
}

Result<JsonReader::Kind> JsonReader::peek() {
  skipSpace();
  if (at_ == text_.size()) return wrong("it ends too early");
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return Kind::kNumber;
  }
}

Status JsonReader::begin(char bracket) {
  if (!take(bracket)) return wrong(bracket == '{' ? "an object is expected" : "a list is expected");
  if (hasValue_.size() == kMaxDepth) return wrong("it is nested too deeply");
  hasValue_.push_back(false);
  return {};
}

Result<bool> JsonReader::next(char bracket) {
  if (hasValue_.empty()) return wrong("no object or list is open");
  if (take(bracket)) {
    hasValue_.pop_back();
    return false;
  }
  if (hasValue_.back() && !take(',')) return wrong("a comma is expected");
  hasValue_.back() = true;
  return true;
}

Status JsonReader::beginObject() {
  return begin('{');
}

Result<bool> JsonReader::nextKey(std::string* key) {
  HEARTH_ASSIGN(const bool isThere, next('}'));
  if (!isThere) return false;
  HEARTH_TRY(readString(key));
  if (!take(':')) return wrong("a colon is expected");
  return true;
}

Status JsonReader::beginArray() {
  return begin('[');
}

Result<bool> JsonReader::nextElement() {
  return next(']');
}

Result<uint32_t> JsonReader::readHex() {
  uint32_t code = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (problem != std::errc() || digits.size() != 4 || end != digits.data() + 4)
    return wrong("four hexadecimal digits are expected");
  at_ += 4;
  return code;
}

Status JsonReader::readEscape(std::string* text) {
  if (at_ == text_.size()) return wrong("it ends within a string");
  const char c = text_[at_++];
  switch (c) {
    case '"':
    case '\\':
    case '/':
      text->push_back(c);
      return {};
    case 'b':
      text->push_back('\b');
      return {};
    case 'f':
      text->push_back('\f');
      return {};
    case 'n':
      text->push_back('\n');
      return {};
    case 'r':
      text->push_back('\r');
      return {};
    case 't':
      text->push_back('\t');
      return {};
    case 'u':
      break;
    default:
      return wrong("an escape is not known");
  }
  HEARTH_ASSIGN(uint32_t code, readHex());
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") return wrong("half of a surrogate pair is missing");
    at_ += 2;
    HEARTH_ASSIGN(const uint32_t low, readHex());
    if (low < 0xDC00 || low > 0xDFFF) return wrong("half of a surrogate pair is missing");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    return wrong("half of a surrogate pair is missing");
  }
  appendCharacter(code, text);
  return {};
}

Status JsonReader::readString(std::string* text) {
  if (!take('"')) return wrong("a string is expected");
  text->clear();
  for (;;) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<uint8_t>(text_[at_]) >= 0x20)
      ++at_;
    const std::string_view run = text_.substr(begin, at_ - begin);
    if (findInvalidUtf8(run) != std::string_view::npos) return wrong("a string is no UTF-8");
    text->append(run);
    if (at_ == text_.size()) return wrong("it ends within a string");
    if (text_[at_] == '"') {
      ++at_;
      return {};
    }
    if (text_[at_] != '\\') return wrong("a string holds a control character");
    ++at_;
    HEARTH_TRY(readEscape(text));
  }
}

std::string_view JsonReader::numberText() {
  skipSpace();
  const size_t begin = at_;
  while (at_ < text_.size() && std::string_view("+-.0123456789eE").contains(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<double> JsonReader::readNumber() {
  const std::string_view digits = numberText();
  double number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || problem != std::errc() || end != digits.data() + digits.size() ||
      !std::isfinite(number))
    return wrong("a number is expected");
  return number;
}

Result<int64_t> JsonReader::readInteger() {
  const std::string_view digits = numberText();
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || problem != std::errc() || end != digits.data() + digits.size())
    return wrong("a whole number is expected");
  return number;
}

Result<bool> JsonReader::readBool() {
  skipSpace();
  if (text_.substr(at_, 4) == "true") {
    at_ += 4;
    return true;
  }
  HEARTH_TRY(takeWord("false"));
  return false;
}

Status JsonReader::skip() {
  std::string scratch;
  const size_t depth = hasValue_.size();
  std::vector<bool> isObject;
  // Values are skipped one after the other; what opens adds to the depth, so that this needs no
  // recursion.
  for (;;) {
    HEARTH_ASSIGN(const Kind kind, peek());
    switch (kind) {
      case Kind::kObject:
        HEARTH_TRY(beginObject());
        isObject.push_back(true);
        break;
      case Kind::kArray:
        HEARTH_TRY(beginArray());
        isObject.push_back(false);
        break;
      case Kind::kString:
        HEARTH_TRY(readString(&scratch));
        break;
      case Kind::kNumber:
        HEARTH_TRY(readNumber());
        break;
      case Kind::kBool:
        HEARTH_TRY(readBool());
        break;
      case Kind::kNull:
        HEARTH_TRY(takeWord("null"));
        break;
    }
    for (;;) {
      if (hasValue_.size() == depth) return {};
      bool isThere = false;
      if (isObject.back()) {
        HEARTH_ASSIGN(isThere, nextKey(&scratch));
      } else {
        HEARTH_ASSIGN(isThere, nextElement());
      }
      if (isThere) break;
      isObject.pop_back();
    }
  }
}

Status JsonReader::expectEnd() {
  skipSpace();
  if (at_ != text_.size()) return wrong("more follows its end");
  return {};
}

}  // namespace hearth::llm
