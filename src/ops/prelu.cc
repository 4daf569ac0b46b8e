// SPDX-License-Identifier: Apache-2.0
// PRELU. Inputs: data, alpha (slope of negative values, broadcast).
#include <algorithm>
#include <limits>

#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/fixed_point.h"
#include "ops/prepare.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(
      signature.inputType(0, kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  return signature.outputTypeLike(0, 0);
}

// multiply() of fixed_point.h without calls and branches, so that loops over it vectorise.
struct InlineMultiplier {
  int64_t multiplier;
  int left, right;

  explicit InlineMultiplier(FixedMultiplier factor)
      : multiplier(factor.multiplier),
        left(std::clamp(factor.shift, 0, 31)),
        right(std::clamp(-factor.shift, 0, 31)) {}

  HEARTH_INLINE int32_t operator()(int32_t value) const {
    constexpr int64_t kLowest = std::numeric_limits<int32_t>::min();
    constexpr int64_t kHighest = std::numeric_limits<int32_t>::max();
    int64_t shifted = int64_t{value} * (int64_t{1} << left);
    shifted = shifted < kLowest ? kLowest : shifted;
    shifted = shifted > kHighest ? kHighest : shifted;
    const int64_t product = shifted * multiplier;
    const int64_t nudged = product + (product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30));
    // Divides by 2^31 and cuts towards zero.
    const int64_t high = (nudged + (nudged < 0 ? (int64_t{1} << 31) - 1 : 0)) >> 31;
    const int64_t mask = (int64_t{1} << right) - 1;
    const int64_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
    return static_cast<int32_t>((high >> right) + ((high & mask) > threshold ? 1 : 0));
  }
};

// Rounds as TFLite's LEAKY_RELU does; the results are the same to the last bit.
Status executeSymmetric16(OperationContext& context) {
  const graph::Operand& input = *context.inputs[0].operand;
  const graph::Operand& slope = *context.inputs[1].operand;
  const graph::Operand& output = *context.outputs[0].operand;
  const InlineMultiplier positive(toFixedMultiplier(input.scale / output.scale));
  const InlineMultiplier negative(toFixedMultiplier(input.scale * slope.scale / output.scale));
  mapBroadcast(context, context.outputs[0].dimensions, context.inputs[0].as<int16_t>(),
               context.inputs[1].as<int16_t>(), context.outputs[0].as<int16_t>(),
               [=](int16_t value, int16_t factor) HEARTH_INLINE {
                 const int32_t below = negative(value * factor);
                 const int32_t scaled = value < 0 ? below : positive(value);
                 const int32_t raised = scaled < -32768 ? -32768 : scaled;
                 return static_cast<int16_t>(raised > 32767 ? 32767 : raised);
               });
  return {};
}

Status execute(OperationContext& context) {
  if (context.inputs[0].type() == OperandType::kTensorQuant16Symm)
    return executeSymmetric16(context);
  const RealInput input(context.inputs[0]);
  const RealInput alpha(context.inputs[1]);
  RealOutput output(context.outputs[0]);
  mapBroadcast(context, context.outputs[0].dimensions, input.data(), alpha.data(), output.data(),
               [](float value, float slope) {
                 const float product = value * slope;
                 return value < 0.0f ? product : value;
               });
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kPreluOperation = {OperationType::kPrelu, validate, prepareBroadcastOfTwo,
                                             execute};

}  // namespace hearth::ops
