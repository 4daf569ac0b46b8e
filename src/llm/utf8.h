// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8 text (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::llm {

// U+FFFD, in place of what is no character.
inline constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";

struct Character {
  uint32_t code = 0;  // the code point
  uint32_t size = 0;  // in bytes, 1 to 4
  bool isValid = true;
};

// The character at `at`, which lies inside the text. Of bytes that are no UTF-8 it takes as many as
// begin a character, at least one, and is not valid.
Character decodeCharacter(std::string_view text, size_t at);

// `code` is at most 0x10FFFF and no surrogate.
void appendCharacter(uint32_t code, std::string* text);

// The first byte that belongs to no character; npos in valid text.
size_t findInvalidUtf8(std::string_view text);

// The text with U+FFFD in place of each group of bytes that are no character.
std::string replaceInvalidUtf8(std::string_view text);

// How many bytes at the end begin a character that more bytes could complete: 0 to 3.
size_t unfinishedBytes(std::string_view text);

}  // namespace hearth::llm
