// SPDX-License-Identifier: Apache-2.0
// Rearrangements of 32-bit words in vectors of four, which every instruction set has in some form.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::ops {

typedef uint32_t WordVector __attribute__((vector_size(16)));

// Transposes 4 by 4 words. Strides, from row to row, count bytes.
HEARTH_INLINE inline void transposeWords(const uint8_t* source, int64_t sourceStride,
                                         uint8_t* target, int64_t targetStride) {
  WordVector rows[4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i)
    std::memcpy(&rows[i], source + i * sourceStride, sizeof(WordVector));
  const WordVector a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const WordVector b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const WordVector c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const WordVector d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  const WordVector columns[4] = {
      __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
      __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i)
    std::memcpy(target + i * targetStride, &columns[i], sizeof(WordVector));
}

}  // namespace hearth::ops
