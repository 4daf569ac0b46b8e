// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/format.h"

namespace hearth::tflite {
namespace {

constexpr size_t kMaxTextBytes = 1024;

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
size_t sequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<uint8_t>(text[i]);
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // The second byte reveals overlong forms, surrogates and values above U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// Whether all characters are ASCII and printable. The names in a language model are a megabyte, so
// this looks at eight bytes at once: the first one below 0x20, and each from 0x7F on, sets a high
// bit, and without such a byte none is set.
bool isPlain(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  const auto isPlainWord = [](uint64_t word) {
    return ((word | (word + kOnes) | (word - 0x20 * kOnes)) & 0x80 * kOnes) == 0;
  };
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    if (!isPlainWord(word)) return false;
  }
  if (i == text.size()) return true;  // there may be no text at all
  uint64_t rest = 0x20 * kOnes;
  std::memcpy(&rest, text.data() + i, text.size() - i);
  return isPlainWord(rest);
}

}  // namespace

std::string cleanText(std::string_view text) {
  std::string clean;
  std::string_view rest = text;
  // Nearly all texts are.
  if (rest.size() <= kMaxTextBytes && isPlain(rest)) return std::string(rest);
  clean.reserve(std::min(rest.size(), kMaxTextBytes));
  while (!rest.empty()) {
    size_t length = sequenceLength(rest);
    const uint8_t lead = static_cast<uint8_t>(rest[0]);
    const bool isPrintable = length > 1 || (length == 1 && lead >= 0x20 && lead != 0x7F);
    if (length == 0) length = 1;
    if (clean.size() + length > kMaxTextBytes) break;
    if (isPrintable)
      clean.append(rest.substr(0, length));
    else
      clean.push_back('?');
    rest.remove_prefix(length);
  }
  return clean;
}

std::string cleanText(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : cleanText(text->string_view());
}

schema::BuiltinOperator builtinCode(const schema::OperatorCode& code) {
  return std::max(code.builtin_code(),
                  static_cast<schema::BuiltinOperator>(code.deprecated_builtin_code()));
}

std::string operationName(const schema::OperatorCode& code) {
  const schema::BuiltinOperator builtin = builtinCode(code);
  if (builtin == schema::BuiltinOperator::CUSTOM) return cleanText(code.custom_code());
  const std::string_view name = schema::EnumNameBuiltinOperator(builtin);
  if (name.empty()) return base::formatText("BUILTIN_{}", static_cast<int32_t>(builtin));
  return std::string(name);
}

std::string tensorTypeName(schema::TensorType type) {
  const std::string_view name = schema::EnumNameTensorType(type);
  if (name.empty()) return base::formatText("TYPE_{}", static_cast<int32_t>(type));
  return std::string(name);
}

}  // namespace hearth::tflite
