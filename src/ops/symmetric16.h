// SPDX-License-Identifier: Apache-2.0
// Convolutions with 16-bit activations and symmetric 8-bit weights: sums are exact and rounded
// once, halves away from zero.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/activation.h"
#include "ops/operation.h"

namespace hearth::ops {

// The nearest integer, halves away from zero, for |value| < 2^31; without calls, so that loops over
// it vectorise.
HEARTH_INLINE inline int32_t nearestInteger(double value) {
  constexpr double kBelowHalf = 0x1.fffffffffffffp-2;
  return static_cast<int32_t>(value + std::copysign(kBelowHalf, value));
}

// Whether inputs 0 and 1 of a layer have such types, the weights have the zero point 0, and sums of
// `products` products of two elements fit in 32 bits.
bool isSymmetric16Layer(const OperationContext& context, uint64_t products);

// How sums of inputs 0 and 1 become steps of output 0. Thread-safe.
class Symmetric16Output {
 public:
  // For outputs of `channels` channels; input 2, if present, is a bias for each.
  Symmetric16Output(const OperationContext& context, FusedActivation activation, size_t channels);

  // Writes the steps of all channels of one pixel. To be called inside base::onWidestVectors().
  template <typename Sum>
  HEARTH_INLINE void store(const Sum* sums, int16_t* target) const {
    const double* const bias = bias_.data();
    const double* const factors = factors_.data();
    const double lowest = lowest_;
    const double highest = highest_;
    const size_t count = bias_.size();
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      double value = (static_cast<double>(sums[i]) + bias[i]) * factors[i];
      value = value < lowest ? lowest : value;
      value = value > highest ? highest : value;
      value = value == value ? value : 0.0;
      target[i] = static_cast<int16_t>(nearestInteger(value));
    }
  }

 private:
  std::vector<double> bias_;
  std::vector<double> factors_;
  double lowest_ = 0;
  double highest_ = 0;
};

}  // namespace hearth::ops
