// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::graph {

// Whether all of `values` are in [lowest, highest], which are 0 or positive; -0 is not. Numbers
// that are positive compare as their bits do, and all others' bits are below or above; there is no
// way out of the loop, so that it runs in vectors: the embeddings of a language model have hundreds
// of thousands of scales, which a start checks several times.
inline bool areWithin(std::span<const float> values, float lowest, float highest) {
  const auto low = std::bit_cast<int32_t>(lowest);
  const auto high = std::bit_cast<int32_t>(highest);
  constexpr size_t kLanes = 8;
  int32_t wrong[kLanes] = {};
  size_t i = 0;
  const auto isWrong = [&](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return static_cast<int32_t>(bits < low) | static_cast<int32_t>(bits > high);
  };
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) wrong[lane] |= isWrong(values[i + lane]);
  for (; i < values.size(); ++i) wrong[0] |= isWrong(values[i]);
  return std::ranges::none_of(wrong, [](int32_t one) { return one != 0; });
}

}  // namespace hearth::graph
