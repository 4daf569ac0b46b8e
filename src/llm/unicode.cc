// SPDX-License-Identifier: Apache-2.0
#include "llm/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hearth::llm {
namespace {

// The first code point of each range, times 32, plus its category.
constexpr uint32_t kRanges[] = {
#include "llm/unicode_categories.inc"
};
constexpr uint32_t kCategoryBits = 5;
constexpr uint32_t kLastCode = 0x10FFFF;
constexpr size_t kQuick = 256;

constexpr std::array<std::string_view, 30> kNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

constexpr Category search(uint32_t code) {
  const uint32_t wanted = code << kCategoryBits | ((1u << kCategoryBits) - 1);
  const auto* const after = std::upper_bound(std::begin(kRanges), std::end(kRanges), wanted);
  return static_cast<Category>(*(after - 1) & ((1u << kCategoryBits) - 1));
}

constexpr auto kFirst = [] {
  std::array<Category, kQuick> first{};
  for (uint32_t code = 0; code < kQuick; ++code) first[code] = search(code);
  return first;
}();

}  // namespace

Category categoryOf(uint32_t code) {
  if (code < kQuick) return kFirst[code];
  return code > kLastCode ? Category::kCn : search(code);
}

std::optional<Categories> categoriesNamed(std::string_view name) {
  Categories found = 0;
  for (size_t i = 0; i < kNames.size(); ++i)
    if (!name.empty() && kNames[i].starts_with(name)) found |= Categories{1} << i;
  if (found == 0) return std::nullopt;
  return found;
}

bool isWhiteSpace(uint32_t code) {
  if (code < kQuick) return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0;
  return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace hearth::llm
