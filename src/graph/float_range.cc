// SPDX-License-Identifier: Apache-2.0
#include "graph/float_range.h"

#include <algorithm>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::graph {
namespace {

constexpr size_t kLanes = 16;
struct Lanes {
  int32_t least[kLanes];
  int32_t greatest[kLanes];
};

// The loop has no early exit, so that the compiler can vectorise it: the embeddings of a language
// model have hundreds of thousands of scales.
HEARTH_INLINE inline void widen(Lanes* all, const float* values, size_t steps) {
  Lanes lanes = *all;
  for (size_t i = 0; i < steps; ++i) {
    int32_t bits[kLanes];
    std::memcpy(bits, values + i * kLanes, sizeof bits);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes.least[lane] = std::min(lanes.least[lane], bits[lane]);
      lanes.greatest[lane] = std::max(lanes.greatest[lane], bits[lane]);
    }
  }
  *all = lanes;
}

}  // namespace

FloatRange rangeOf(std::span<const float> values) {
  FloatRange all;
  const size_t steps = values.size() / kLanes;
  if (steps != 0) {
    Lanes lanes;
    std::ranges::fill(lanes.least, all.least);
    std::ranges::fill(lanes.greatest, all.greatest);
    base::onWidestVectors([out = &lanes, in = values.data(), steps] { widen(out, in, steps); });
    all.least = std::ranges::min(lanes.least);
    all.greatest = std::ranges::max(lanes.greatest);
  }
  for (const float value : values.subspan(steps * kLanes)) {
    const auto bits = std::bit_cast<int32_t>(value);
    all.least = std::min(all.least, bits);
    all.greatest = std::max(all.greatest, bits);
  }
  return all;
}

}  // namespace hearth::graph
