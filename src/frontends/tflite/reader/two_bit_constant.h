// SPDX-License-Identifier: Apache-2.0
// INT2 constants: four elements in a byte, the first in its lowest bits. Nothing below the reader
// knows them, so they become elements of eight bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth::tflite {

// Bytes that `count` elements take in the file.
constexpr uint64_t twoBitSize(uint64_t count) {
  return count / 4 + (count % 4 != 0);
}

// One byte, -2 to 1 in two's complement, for each element. `packed` has twoBitSize(count) bytes.
std::vector<uint8_t> widenTwoBits(std::span<const uint8_t> packed, uint64_t count);

}  // namespace hearth::tflite
