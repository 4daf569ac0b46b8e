// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace hearth::graph {

// The least and the greatest of some numbers, as bit patterns. Positive numbers compare like their
// bits; the bits of all other values (-0, NaN, infinities) lie below or above those.
struct FloatRange {
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t greatest = std::numeric_limits<int32_t>::min();

  // Whether all are in [lowest, highest], which are 0 or positive. -0 is outside.
  bool isWithin(float lowest, float highest) const {
    return least >= std::bit_cast<int32_t>(lowest) && greatest <= std::bit_cast<int32_t>(highest);
  }
};

FloatRange rangeOf(std::span<const float> values);

inline bool areWithin(std::span<const float> values, float lowest, float highest) {
  return rangeOf(values).isWithin(lowest, highest);
}

}  // namespace hearth::graph
