// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/factors.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hearth::vulkan {

std::vector<uint8_t> factorBytes(const std::vector<double>& factors) {
  constexpr int kMantissaBits = 53;
  std::vector<uint32_t> words;
  words.reserve(factors.size() * 3);
  for (const double factor : factors) {
    int exponent = 0;
    const double fraction = std::frexp(factor, &exponent);
    const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, kMantissaBits));
    words.push_back(static_cast<uint32_t>(mantissa));
    words.push_back(static_cast<uint32_t>(mantissa >> 32));
    words.push_back(std::bit_cast<uint32_t>(exponent - kMantissaBits));
  }
  std::vector<uint8_t> bytes(words.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

}  // namespace hearth::vulkan
