// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::ops {

// std::memcpy() for pieces of which most are short: what is to be done takes less time than a call.
// For bodies of base::onWidestVectors().
HEARTH_INLINE inline void copyShort(uint8_t* target, const uint8_t* source, size_t bytes) {
  constexpr size_t kNarrow = 16;
  constexpr size_t kWide = 64;
  constexpr size_t kLong = 1024;
  if (bytes < kNarrow || bytes > kLong) {
    std::memcpy(target, source, bytes);
    return;
  }
  // The last step may repeat bytes of the one before.
  if (bytes < kWide) {
    const size_t last = bytes - kNarrow;
    for (size_t i = 0; i < last; i += kNarrow) std::memcpy(target + i, source + i, kNarrow);
    std::memcpy(target + last, source + last, kNarrow);
    return;
  }
  const size_t last = bytes - kWide;
  for (size_t i = 0; i < last; i += kWide) std::memcpy(target + i, source + i, kWide);
  std::memcpy(target + last, source + last, kWide);
}

}  // namespace hearth::ops
