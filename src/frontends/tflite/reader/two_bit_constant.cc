// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/two_bit_constant.h"

namespace hearth::tflite {

std::vector<uint8_t> widenTwoBits(std::span<const uint8_t> packed, uint64_t count) {
  std::vector<uint8_t> elements(count);
  for (uint64_t i = 0; i < count; ++i) {
    const int bits = packed[i / 4] >> (i % 4 * 2) & 3;
    elements[i] = static_cast<uint8_t>(bits < 2 ? bits : bits - 4);
  }
  return elements;
}

}  // namespace hearth::tflite
