// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/vector_dispatch.h"

namespace hearth::ops {

// For bodies of base::onWidestVectors().
HEARTH_INLINE inline float dotProductInline(const float* a, const float* b, size_t count) {
  // Independent sums: the compiler may not reorder a single one into vector lanes.
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0.0f;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

}  // namespace hearth::ops
