// SPDX-License-Identifier: Apache-2.0
#include "llm/byte_level.h"

#include <array>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr uint32_t kFirstOther = 0x100;

constexpr bool standsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

// Characters have one or two bytes.
struct Table {
  std::array<std::array<char, 2>, 256> texts{};
  std::array<uint8_t, 256> sizes{};
  std::array<int16_t, 512> bytes{};  // by character; -1 = none
};

constexpr Table kTable = [] {
  Table table;
  table.bytes.fill(-1);
  uint32_t other = kFirstOther;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t code = standsForItself(byte) ? byte : other++;
    table.bytes[code] = static_cast<int16_t>(byte);
    table.sizes[byte] = code < 0x80 ? 1 : 2;
    if (code < 0x80)
      table.texts[byte] = {static_cast<char>(code)};
    else
      table.texts[byte] = {static_cast<char>(0xC0 | code >> 6),
                           static_cast<char>(0x80 | (code & 0x3F))};
  }
  return table;
}();

}  // namespace

std::string_view byteCharacter(uint8_t byte) {
  return {kTable.texts[byte].data(), kTable.sizes[byte]};
}

std::optional<uint8_t> byteOfCharacter(uint32_t code) {
  if (code >= kTable.bytes.size() || kTable.bytes[code] < 0) return std::nullopt;
  return static_cast<uint8_t>(kTable.bytes[code]);
}

void appendBytes(std::string_view text, std::string* bytes) {
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    if (const auto byte = byteOfCharacter(character.code); byte && character.isValid)
      bytes->push_back(static_cast<char>(*byte));
    else
      bytes->append(text, at, character.size);
    at += character.size;
  }
}

std::optional<uint8_t> byteOfToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned byte = 0;
  for (const char c : text.substr(3, 2)) {
    const bool isDigit = c >= '0' && c <= '9';
    if (!isDigit && (c < 'A' || c > 'F')) return std::nullopt;
    byte = byte << 4 | static_cast<unsigned>(isDigit ? c - '0' : c - 'A' + 10);
  }
  return static_cast<uint8_t>(byte);
}

}  // namespace hearth::llm
