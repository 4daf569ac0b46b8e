// SPDX-License-Identifier: Apache-2.0
// What stands behind a backslash in regular expressions, whether of tokenizers or of JSON schemas.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::llm {

// The control character of \n, \r, \t, \f or \v; nullopt for another letter.
std::optional<uint32_t> controlCharacter(uint32_t letter);

// The number of a character in hexadecimal digits; nullopt for another text and for a number that
// no character has.
std::optional<uint32_t> numberOfCharacter(std::string_view digits);

}  // namespace hearth::llm
