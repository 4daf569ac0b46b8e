// SPDX-License-Identifier: Apache-2.0
#include "llm/escape.h"

#include <charconv>
#include <system_error>

namespace hearth::llm {

std::optional<uint32_t> controlCharacter(uint32_t letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    default:
      return std::nullopt;
  }
}

std::optional<uint32_t> numberOfCharacter(std::string_view digits) {
  constexpr uint32_t kLastCode = 0x10FFFF;
  uint32_t code = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read, problem] = std::from_chars(digits.data(), end, code, 16);
  if (problem != std::errc() || read != end || code > kLastCode) return std::nullopt;
  return code;
}

}  // namespace hearth::llm
