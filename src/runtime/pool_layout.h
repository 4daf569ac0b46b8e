// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace hearth::runtime {

// Places `bytes` of an operand behind the `*end` bytes that a pool of the runtime's own has, and
// moves the end. Returns the operand's offset. Every operand begins at a multiple of 64 bytes, so
// kernels load it with aligned instructions.
inline uint64_t placeInPool(uint64_t bytes, uint64_t* end) {
  constexpr uint64_t kAlignment = 64;
  return std::exchange(*end, *end + (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace hearth::runtime
