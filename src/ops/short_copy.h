// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::ops {

// The size of a cache line.
typedef uint8_t LineVector __attribute__((vector_size(64)));

// Copies kCount lines from the beginning and kCount from the end of `bytes`; they may overlap. All
// are read first, since a read waits for an earlier write whose address ends in the same bits.
template <size_t kCount>
HEARTH_INLINE inline void copyLines(uint8_t* target, const uint8_t* source, size_t bytes) {
  constexpr size_t kLine = sizeof(LineVector);
  LineVector lines[2 * kCount];
#pragma GCC unroll 4
  for (size_t i = 0; i < kCount; ++i) {
    std::memcpy(&lines[i], source + i * kLine, kLine);
    std::memcpy(&lines[kCount + i], source + bytes - (kCount - i) * kLine, kLine);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < kCount; ++i) {
    std::memcpy(target + i * kLine, &lines[i], kLine);
    std::memcpy(target + bytes - (kCount - i) * kLine, &lines[kCount + i], kLine);
  }
}

// std::memcpy() for short pieces, for which a call would take longer than the copy. Must be called
// inside base::onWidestVectors().
HEARTH_INLINE inline void copyShort(uint8_t* target, const uint8_t* source, size_t bytes) {
  constexpr size_t kNarrow = 16;
  constexpr size_t kLine = sizeof(LineVector);
  if (bytes < kNarrow || bytes > 4 * kLine) {
    std::memcpy(target, source, bytes);
  } else if (bytes < kLine) {
    // The last copy may overlap the one before.
    const size_t last = bytes - kNarrow;
    for (size_t i = 0; i < last; i += kNarrow) std::memcpy(target + i, source + i, kNarrow);
    std::memcpy(target + last, source + last, kNarrow);
  } else if (bytes == kLine) {
    std::memcpy(target, source, kLine);
  } else if (bytes <= 2 * kLine) {
    copyLines<1>(target, source, bytes);
  } else {
    copyLines<2>(target, source, bytes);
  }
}

}  // namespace hearth::ops
