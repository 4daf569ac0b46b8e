// SPDX-License-Identifier: Apache-2.0
// The characters by which tokenizers of bytes write them, as GPT-2 did: printable bytes of Latin-1
// stand for themselves, the others, in order, are U+0100 and on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::llm {

// The character for a byte, in UTF-8.
std::string_view byteCharacter(uint8_t byte);

// The byte that a character stands for.
std::optional<uint8_t> byteOfCharacter(uint32_t code);

// Appends the bytes that a token's text stands for; the text of a character that stands for none is
// appended itself.
void appendBytes(std::string_view text, std::string* bytes);

// The byte of a token such as <0x0A>, as tokenizers have that are of characters and fall back to
// bytes; nothing for another token.
std::optional<uint8_t> byteOfToken(std::string_view text);

}  // namespace hearth::llm
