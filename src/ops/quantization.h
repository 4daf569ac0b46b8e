// SPDX-License-Identifier: Apache-2.0
// Affine quantisation: real = scale * (quantised - zeroPoint). Results are rounded once from
// double, half away from zero, and saturate; NNAPI's allowance is one step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"
#include "base/vector_dispatch.h"
#include "ops/operation.h"

namespace hearth::ops {

// Smallest and largest value of a quantised type; those of int32 for all other types.
struct QuantizedRange {
  int32_t lowest = 0;
  int32_t highest = 0;
};
QuantizedRange quantizedRange(OperandType type);

// Nearest integer in [lowest, highest]; `zeroPoint` for NaN, which has no nearest integer.
inline int32_t roundAndClamp(double value, int32_t zeroPoint, int32_t lowest, int32_t highest) {
  const double shifted = std::round(value) + zeroPoint;
  if (shifted <= lowest) return lowest;
  if (shifted >= highest) return highest;
  return std::isnan(shifted) ? std::clamp(zeroPoint, lowest, highest)
                             : static_cast<int32_t>(shifted);
}

// The nearest integer, halves away from zero, for |value| < 2^30; without calls, so that loops over
// it vectorise.
HEARTH_INLINE inline int32_t roundSmall(float value) {
  constexpr float kBelowHalf = 0x1.fffffep-2f;
  return static_cast<int32_t>(value + std::copysign(kBelowHalf, value));
}

// The size of one step of the operand. Integers without a scale (TENSOR_INT16 may have none) have
// steps of 1.
inline float stepOf(const graph::Operand& operand) {
  const bool isPlain = operand.type == OperandType::kTensorInt16 && operand.scale == 0.0f;
  return isPlain ? 1.0f : operand.scale;
}

// A real number as it is stored in the operand's type.
int32_t quantize(double real, const graph::Operand& operand);
inline double dequantize(int32_t value, const graph::Operand& operand) {
  return static_cast<double>(stepOf(operand)) *
         (static_cast<int64_t>(value) - static_cast<int64_t>(operand.zeroPoint));
}

// Converts accumulators of (input - zeroPoint) * (filter - zeroPoint) + bias to the output's scale.
struct Requantization {
  std::vector<double> multipliers;  // one, or one for each output channel
  int32_t zeroPoint = 0;
  int32_t lowest = 0;  // bounds of the fused activation within the type's range
  int32_t highest = 0;

  int32_t apply(int32_t accumulator, size_t channel) const {
    const double multiplier = multipliers.size() == 1 ? multipliers[0] : multipliers[channel];
    return roundAndClamp(accumulator * multiplier, zeroPoint, lowest, highest);
  }
};

// Largest relative error of a bias' scale, against input * filter scale, that counts as rounding.
inline constexpr double kBiasScaleTolerance = 1e-3;

// Checks an INT32 bias: its zero point is 0 and its scale is input scale * filter scale, within
// kBiasScaleTolerance. A filter with a scale for each channel leaves the bias' scale open.
Status checkBiasQuantization(const OperationContext& context, size_t input, size_t filter,
                             size_t bias);

}  // namespace hearth::ops
