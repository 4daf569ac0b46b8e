// SPDX-License-Identifier: Apache-2.0
// NNAPI's fused activations (FuseCode).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/quantization.h"

namespace hearth::ops {

enum class FusedActivation : int32_t { kNone = 0, kRelu = 1, kRelu1 = 2, kRelu6 = 3 };

// The values that an activation lets through; infinite where it has no bound.
struct ActivationRange {
  float lowest;
  float highest;

  // NaN passes unchanged.
  float apply(float value) const {
    const float raised = value < lowest ? lowest : value;
    return raised > highest ? highest : raised;
  }
};
ActivationRange activationRange(FusedActivation activation);

// The same bounds as quantised values of an output operand, inside its type's range.
QuantizedRange quantizedActivationRange(FusedActivation activation, const graph::Operand& output);

// The INT32 scalar input `index` as an activation. kBadData for an unknown code.
Result<FusedActivation> parseActivation(const OperationContext& context, size_t index);

}  // namespace hearth::ops
