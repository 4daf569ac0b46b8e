// SPDX-License-Identifier: Apache-2.0
// Rearrangements of the bytes in vectors of 16, which every instruction set has in some form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/vector_dispatch.h"

namespace hearth::ops {

typedef uint8_t ByteVector __attribute__((vector_size(16)));

HEARTH_INLINE inline ByteVector loadVector(const uint8_t* source) {
  ByteVector vector;
  std::memcpy(&vector, source, sizeof(vector));
  return vector;
}

HEARTH_INLINE inline void storeVector(ByteVector vector, uint8_t* target) {
  std::memcpy(target, &vector, sizeof(vector));
}

template <size_t kBytes, size_t... kPlaces>
HEARTH_INLINE inline ByteVector reverseBlocks(ByteVector v, std::index_sequence<kPlaces...>) {
  constexpr size_t kLast = sizeof(ByteVector) / kBytes - 1;
  return __builtin_shufflevector(v, v, ((kLast - kPlaces / kBytes) * kBytes + kPlaces % kBytes)...);
}

// Reverses the order of the blocks of kBytes bytes.
template <size_t kBytes>
HEARTH_INLINE inline ByteVector reverseBlocks(ByteVector v) {
  return reverseBlocks<kBytes>(v, std::make_index_sequence<sizeof(ByteVector)>());
}

// The bytes of the first halves of a and b in turn, or of the second halves.
HEARTH_INLINE inline ByteVector zipFirst(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
HEARTH_INLINE inline ByteVector zipSecond(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// Transposes 16 by 16 bytes.
HEARTH_INLINE inline void transposeSquare(const uint8_t* source, int64_t sourceStride,
                                          uint8_t* target, int64_t targetStride) {
  constexpr size_t kSize = sizeof(ByteVector);
  ByteVector rows[kSize];
#pragma GCC unroll 16
  for (size_t i = 0; i < kSize; ++i)
    rows[i] = loadVector(source + static_cast<int64_t>(i) * sourceStride);
  // Each round doubles the length of the runs of bytes that come from one column.
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    ByteVector zipped[kSize];
#pragma GCC unroll 8
    for (size_t i = 0; i < kSize / 2; ++i) {
      zipped[2 * i] = zipFirst(rows[i], rows[i + kSize / 2]);
      zipped[2 * i + 1] = zipSecond(rows[i], rows[i + kSize / 2]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < kSize; ++i) rows[i] = zipped[i];
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kSize; ++i)
    storeVector(rows[i], target + static_cast<int64_t>(i) * targetStride);
}

}  // namespace hearth::ops
