// SPDX-License-Identifier: Apache-2.0
// Values of templates as text: as Python prints them, and as JSON.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "llm/template_value.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Appends text up to a limit.
class Printer {
 public:
  explicit Printer(size_t limit) : limit_(limit) {}

  bool isFull() const { return text_.size() > limit_; }
  std::string take() { return std::move(text_); }

  void add(std::string_view text) {
    if (!isFull()) text_ += text;
  }
  void addPython(const TemplateValue& value, bool hasQuotes);
  Status addJson(const TemplateValue& value, const JsonStyle& style, int64_t level);

 private:
  void addQuoted(const std::string& text);
  void addJsonText(const std::string& text, bool isAscii);
  void addLineBreak(const JsonStyle& style, int64_t level);

  size_t limit_;
  std::string text_;
};

// A Python string literal.
void Printer::addQuoted(const std::string& text) {
  const char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string made(1, quote);
  for (const char c : text) {
    if (c == '\n')
      made += "\\n";
    else if (c == '\r')
      made += "\\r";
    else if (c == '\t')
      made += "\\t";
    else if (c == '\\' || c == quote)
      made += {'\\', c};
    else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F)
      made += base::formatText("\\x{:02x}", static_cast<unsigned>(static_cast<uint8_t>(c)));
    else
      made.push_back(c);
  }
  made.push_back(quote);
  add(made);
}

void Printer::addPython(const TemplateValue& value, bool hasQuotes) {
  if (isFull()) return;
  if (value.isNone()) return add("None");
  if (const auto* const truth = value.asBool()) return add(*truth ? "True" : "False");
  if (const auto* const integer = value.asInteger()) return add(std::to_string(*integer));
  if (const auto* const number = value.asFloat()) return add(floatText(*number));
  if (const auto* const text = value.asText()) return hasQuotes ? addQuoted(*text) : add(*text);
  if (const auto* const list = value.asList()) {
    add(list->isTuple ? "(" : "[");
    for (size_t i = 0; i < list->items.size() && !isFull(); ++i) {
      if (i > 0) add(", ");
      addPython(list->items[i], true);
    }
    if (list->isTuple && list->items.size() == 1) add(",");
    return add(list->isTuple ? ")" : "]");
  }
  if (const auto* const dictionary = value.asDictionary()) {
    add("{");
    for (size_t i = 0; i < dictionary->items.size() && !isFull(); ++i) {
      if (i > 0) add(", ");
      addQuoted(dictionary->items[i].first);
      add(": ");
      addPython(dictionary->items[i].second, true);
    }
    return add("}");
  }
  if (const auto object = value.asObject()) return add("<" + object->name + ">");
  if (hasQuotes) add("Undefined");
}

void Printer::addJsonText(const std::string& text, bool isAscii) {
  std::string made = "\"";
  const auto unit = [&](uint32_t code) {
    made += base::formatText("\\u{:04x}", code);
  };
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    const uint32_t code = character.code;
    if (code == '"' || code == '\\')
      made += {'\\', static_cast<char>(code)};
    else if (code == '\n')
      made += "\\n";
    else if (code == '\r')
      made += "\\r";
    else if (code == '\t')
      made += "\\t";
    else if (code == '\b')
      made += "\\b";
    else if (code == '\f')
      made += "\\f";
    else if (code < 0x20)
      unit(code);
    else if (!isAscii || code < 0x7F)
      made.append(text, at, character.size);
    else if (code < 0x10000)
      unit(code);
    else
      unit(0xD800 + ((code - 0x10000) >> 10)), unit(0xDC00 + ((code - 0x10000) & 0x3FF));
    at += character.size;
  }
  made.push_back('"');
  add(made);
}

void Printer::addLineBreak(const JsonStyle& style, int64_t level) {
  if (style.indent < 0) return;
  add("\n");
  add(std::string(static_cast<size_t>(style.indent * level), ' '));
}

Status Printer::addJson(const TemplateValue& value, const JsonStyle& style, int64_t level) {
  if (isFull()) return {};
  if (const auto* const truth = value.asBool()) return add(*truth ? "true" : "false"), Status();
  if (value.isNone()) return add("null"), Status();
  if (const auto* const number = value.asFloat(); number != nullptr && !std::isfinite(*number))
    return add(std::isnan(*number) ? "NaN" : *number < 0 ? "-Infinity" : "Infinity"), Status();
  if (value.isNumber()) return addPython(value, false), Status();
  if (const auto* const text = value.asText()) return addJsonText(*text, style.isAscii), Status();
  const bool isInLines = style.indent >= 0;
  const std::string separator = !style.itemSeparator.empty() ? style.itemSeparator
                                : isInLines                  ? ","
                                                             : ", ";
  if (const auto* const list = value.asList()) {
    add("[");
    for (size_t i = 0; i < list->items.size() && !isFull(); ++i) {
      if (i > 0) add(separator);
      addLineBreak(style, level + 1);
      HEARTH_TRY(addJson(list->items[i], style, level + 1));
    }
    if (!list->items.empty()) addLineBreak(style, level);
    add("]");
    return {};
  }
  if (const auto* const dictionary = value.asDictionary()) {
    std::vector<const std::pair<std::string, TemplateValue>*> items;
    for (const auto& item : dictionary->items) items.push_back(&item);
    if (style.isSorted) std::ranges::sort(items, {}, [](const auto* item) { return item->first; });
    add("{");
    for (size_t i = 0; i < items.size() && !isFull(); ++i) {
      if (i > 0) add(separator);
      addLineBreak(style, level + 1);
      addJsonText(items[i]->first, style.isAscii);
      add(style.keySeparator.empty() ? ": " : style.keySeparator);
      HEARTH_TRY(addJson(items[i]->second, style, level + 1));
    }
    if (!items.empty()) addLineBreak(style, level);
    add("}");
    return {};
  }
  return fail(ErrorCode::kBadData, "The template makes JSON of {}.", value.kindName());
}

}  // namespace

std::string floatText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const double size = std::abs(number);
  // Python writes an exponent from 1e16 on, and below 1e-4.
  const bool isPlain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    isPlain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), result.ptr);
  if (isPlain && !text.contains('.')) text += ".0";
  return text;
}

std::string printed(const TemplateValue& value, size_t limit) {
  Printer printer(limit);
  printer.addPython(value, false);
  return printer.take();
}

std::string printedWithQuotes(const TemplateValue& value, size_t limit) {
  Printer printer(limit);
  printer.addPython(value, true);
  return printer.take();
}

Result<std::string> toJson(const TemplateValue& value, const JsonStyle& style, size_t limit) {
  Printer printer(limit);
  HEARTH_TRY(printer.addJson(value, style, 0));
  if (printer.isFull())
    return fail(ErrorCode::kBadData, "The template makes more than {} bytes of JSON.", limit);
  return printer.take();
}

}  // namespace hearth::llm
