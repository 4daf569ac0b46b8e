// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph/model.h"

namespace hearth::cpu {

// Fused activation as NNAPI numbers it (FuseCode).
enum class Fuse : int32_t { kNone = 0, kRelu = 1, kRelu1 = 2, kRelu6 = 3 };

struct FloatRange {
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = std::numeric_limits<float>::infinity();
  bool isAll() const { return std::isinf(lowest) && std::isinf(highest); }
};

inline FloatRange floatRange(Fuse fuse) {
  switch (fuse) {
    case Fuse::kRelu: return {0.0f, std::numeric_limits<float>::infinity()};
    case Fuse::kRelu1: return {-1.0f, 1.0f};
    case Fuse::kRelu6: return {0.0f, 6.0f};
    case Fuse::kNone: break;
  }
  return {};
}

// The activation's range in quantised steps of `operand`, within [typeLowest, typeHighest].
struct StepRange {
  int32_t lowest;
  int32_t highest;
};

inline StepRange stepRange(Fuse fuse, const graph::Operand& operand, int32_t typeLowest,
                           int32_t typeHighest) {
  const FloatRange range = floatRange(fuse);
  const auto step = [&](float value, int32_t fallback) {
    if (std::isinf(value)) return fallback;
    const double steps = std::nearbyint(static_cast<double>(value) / operand.scale) +
                         operand.zeroPoint;
    return static_cast<int32_t>(
        std::clamp(steps, static_cast<double>(typeLowest), static_cast<double>(typeHighest)));
  };
  return {step(range.lowest, typeLowest), step(range.highest, typeHighest)};
}

}  // namespace hearth::cpu
