// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::ops {

// The size of a cache line.
typedef uint8_t LineVector __attribute__((vector_size(64)));

// Copies kCount lines. All are read first, since a read waits for an earlier write whose address
// ends in the same bits.
template <size_t kCount>
HEARTH_INLINE inline void copyLines(uint8_t* target, const uint8_t* source) {
  constexpr size_t kLine = sizeof(LineVector);
  LineVector lines[kCount];
#pragma GCC unroll 4
  for (size_t i = 0; i < kCount; ++i) std::memcpy(&lines[i], source + i * kLine, kLine);
#pragma GCC unroll 4
  for (size_t i = 0; i < kCount; ++i) std::memcpy(target + i * kLine, &lines[i], kLine);
}

// Copies kCount lines from the beginning and kCount from the end of `bytes`; they may overlap.
template <size_t kCount>
HEARTH_INLINE inline void copyEnds(uint8_t* target, const uint8_t* source, size_t bytes) {
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
  constexpr size_t kFour = 4 * kLine;
  if (bytes < kNarrow / 2 || bytes > 4 * kFour) {
    std::memcpy(target, source, bytes);
  } else if (bytes < kNarrow) {
    uint64_t ends[2];
    std::memcpy(&ends[0], source, sizeof ends[0]);
    std::memcpy(&ends[1], source + bytes - sizeof ends[1], sizeof ends[1]);
    std::memcpy(target, &ends[0], sizeof ends[0]);
    std::memcpy(target + bytes - sizeof ends[1], &ends[1], sizeof ends[1]);
  } else if (bytes < kLine) {
    // The last copy may overlap the one before.
    const size_t last = bytes - kNarrow;
    for (size_t i = 0; i < last; i += kNarrow) std::memcpy(target + i, source + i, kNarrow);
    std::memcpy(target + last, source + last, kNarrow);
  } else if (bytes == kLine) {
    copyLines<1>(target, source);
  } else if (bytes <= 2 * kLine) {
    copyEnds<1>(target, source, bytes);
  } else if (bytes <= kFour) {
    copyEnds<2>(target, source, bytes);
  } else {
    for (size_t i = 0; i < bytes - kFour; i += kFour) copyLines<4>(target + i, source + i);
    copyLines<4>(target + bytes - kFour, source + bytes - kFour);
  }
}

}  // namespace hearth::ops
