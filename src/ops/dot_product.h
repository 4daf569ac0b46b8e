// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::ops {

// Number of independent sums: the compiler may not reorder a single sum into vector lanes.
inline constexpr size_t kDotLanes = 16;
typedef float DotLanes __attribute__((vector_size(kDotLanes * sizeof(float))));

// All of the following must be called inside base::onWidestVectors().

// Adds halves pairwise: a chain of sums would take longer than many products.
HEARTH_INLINE inline float sumOfLanes(const DotLanes& lanes) {
  float parts[kDotLanes];
  std::memcpy(parts, &lanes, sizeof(parts));
  for (size_t half = kDotLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

// target[v * targetStride + r] += row r of `rows` * vector v, for kRows rows and kVectors vectors
// of `count` numbers. Each number is loaded once for all of its products.
template <size_t kRows, size_t kVectors>
HEARTH_INLINE inline void addDotProducts(const float* rows, size_t rowStride, const float* vectors,
                                         size_t vectorStride, size_t count, float* target,
                                         size_t targetStride) {
  DotLanes sums[kRows][kVectors] = {};
  size_t i = 0;
  for (; i + kDotLanes <= count; i += kDotLanes) {
    DotLanes factors[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v)
      std::memcpy(&factors[v], vectors + v * vectorStride + i, sizeof(DotLanes));
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      DotLanes row;
      std::memcpy(&row, rows + r * rowStride + i, sizeof(DotLanes));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] += row * factors[v];
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      float sum = 0.0f;
      for (size_t j = i; j < count; ++j)
        sum += rows[r * rowStride + j] * vectors[v * vectorStride + j];
      target[v * targetStride + r] += sum + sumOfLanes(sums[r][v]);
    }
  }
}

HEARTH_INLINE inline float dotProductInline(const float* a, const float* b, size_t count) {
  float sum = 0.0f;
  addDotProducts<1, 1>(a, 0, b, 0, count, &sum, 0);
  return sum;
}

}  // namespace hearth::ops
