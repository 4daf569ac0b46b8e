// SPDX-License-Identifier: Apache-2.0
#include "ops/activation.h"

#include <algorithm>
#include <limits>

namespace hearth::ops {

ActivationRange activationRange(FusedActivation activation) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (activation) {
    case FusedActivation::kRelu:
      return {0.0f, kInfinity};
    case FusedActivation::kRelu1:
      return {-1.0f, 1.0f};
    case FusedActivation::kRelu6:
      return {0.0f, 6.0f};
    case FusedActivation::kNone:
      break;
  }
  return {-kInfinity, kInfinity};
}

QuantizedRange quantizedActivationRange(FusedActivation activation, const graph::Operand& output) {
  QuantizedRange range = quantizedRange(output.type);
  if (activation == FusedActivation::kNone) return range;
  const ActivationRange real = activationRange(activation);
  range.lowest = std::max(range.lowest, quantize(real.lowest, output));
  range.highest = std::min(range.highest, quantize(real.highest, output));
  return range;
}

Result<FusedActivation> parseActivation(const OperationContext& context, size_t index) {
  HEARTH_ASSIGN(const int32_t code, context.scalar<int32_t>(index));
  if (code < 0 || code > 3)
    return fail(ErrorCode::kBadData, "The activation (input {}) of {} is {}, it must be 0 to 3.",
                index, context.describe(), code);
  return static_cast<FusedActivation>(code);
}

}  // namespace hearth::ops
