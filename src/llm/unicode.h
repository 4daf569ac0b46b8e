// SPDX-License-Identifier: Apache-2.0
// Properties of Unicode's characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::llm {

// The general categories, in the order of tools/unicode_tables.py.
enum class Category : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,
};

// A set of categories: bit n is the category with the number n.
using Categories = uint32_t;

// Of any number; one above 0x10FFFF has none assigned.
Category categoryOf(uint32_t code);
inline Categories categoryBit(uint32_t code) {
  return Categories{1} << static_cast<unsigned>(categoryOf(code));
}

// The categories with a name such as "L" or "Lu"; nothing for another name.
std::optional<Categories> categoriesNamed(std::string_view name);

// The property White_Space.
bool isWhiteSpace(uint32_t code);

}  // namespace hearth::llm
