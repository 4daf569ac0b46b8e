// SPDX-License-Identifier: Apache-2.0
#include "llm/utf8.h"

#include <algorithm>

namespace hearth::llm {
namespace {

constexpr uint32_t kReplacementCode = 0xFFFD;

// What the first byte of a character says: its length, and the range of the second byte, which is
// what excludes surrogates, overlong forms and numbers above 0x10FFFF.
struct Lead {
  uint32_t size = 0;  // 0: no character begins so
  uint8_t least = 0x80;
  uint8_t most = 0xBF;
};

Lead leadOf(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte < 0xF0)
    return {3, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5)
    return {4, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  return {};
}

}  // namespace

Character decodeCharacter(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint8_t>(text[at + i]);
  };
  const Lead lead = leadOf(byte(0));
  if (lead.size == 0) return {byte(0), 1, false};
  if (lead.size == 1) return {byte(0), 1, true};
  uint32_t code = byte(0) & (0xFFu >> (lead.size + 1));
  for (uint32_t i = 1; i < lead.size; ++i) {
    const uint8_t least = i == 1 ? lead.least : 0x80;
    const uint8_t most = i == 1 ? lead.most : 0xBF;
    if (at + i >= text.size() || byte(i) < least || byte(i) > most) return {byte(0), i, false};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, lead.size, true};
}

void appendCharacter(uint32_t code, std::string* text) {
  const auto add = [text](uint32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (code < 0x80) {
    add(code);
    return;
  }
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

size_t findInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Character character = decodeCharacter(text, at);
    if (!character.isValid) return at;
    at += character.size;
  }
  return std::string_view::npos;
}

std::string replaceInvalidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    if (character.isValid)
      valid.append(text, at, character.size);
    else
      appendCharacter(kReplacementCode, &valid);
    at += character.size;
  }
  return valid;
}

size_t unfinishedBytes(std::string_view text) {
  for (size_t count = 1; count <= std::min<size_t>(3, text.size()); ++count) {
    const size_t at = text.size() - count;
    const auto byte = static_cast<uint8_t>(text[at]);
    if ((byte & 0xC0) == 0x80) continue;
    const Character character = decodeCharacter(text, at);
    const bool isOpen = !character.isValid && character.size == count && leadOf(byte).size > count;
    return isOpen ? count : 0;
  }
  return 0;
}

}  // namespace hearth::llm
