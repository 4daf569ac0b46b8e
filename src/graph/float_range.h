// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace hearth::graph {

// The least and the greatest of some numbers, as their bits: numbers that are positive compare as
// their bits do, and the bits of all others (-0, NaN, infinities) are below or above those.
struct FloatRange {
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t greatest = std::numeric_limits<int32_t>::min();

  // Whether all are in [lowest, highest], which are 0 or positive; -0 is not.
  bool isWithin(float lowest, float highest) const {
    return least >= std::bit_cast<int32_t>(lowest) && greatest <= std::bit_cast<int32_t>(highest);
  }
};

// There is no way out of the loop, so that it runs in vectors: the embeddings of a language model
// have hundreds of thousands of scales.
inline FloatRange rangeOf(std::span<const float> values) {
  constexpr size_t kLanes = 8;
  FloatRange ranges[kLanes];
  const auto widen = [](FloatRange& range, float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    range.least = std::min(range.least, bits);
    range.greatest = std::max(range.greatest, bits);
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) widen(ranges[lane], values[i + lane]);
  for (; i < values.size(); ++i) widen(ranges[0], values[i]);
  FloatRange all;
  for (const FloatRange& range : ranges) {
    all.least = std::min(all.least, range.least);
    all.greatest = std::max(all.greatest, range.greatest);
  }
  return all;
}

inline bool areWithin(std::span<const float> values, float lowest, float highest) {
  return rangeOf(values).isWithin(lowest, highest);
}

}  // namespace hearth::graph
