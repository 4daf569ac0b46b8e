// SPDX-License-Identifier: Apache-2.0
// PRELU. Inputs: data, alpha (slope of negative values, broadcast).
#include <algorithm>

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

// Rounds as TFLite's LEAKY_RELU does; the results are the same to the last bit.
Status executeSymmetric16(OperationContext& context) {
  const graph::Operand& input = *context.inputs[0].operand;
  const graph::Operand& slope = *context.inputs[1].operand;
  const graph::Operand& output = *context.outputs[0].operand;
  const FixedMultiplier positive = toFixedMultiplier(input.scale / output.scale);
  const FixedMultiplier negative = toFixedMultiplier(input.scale * slope.scale / output.scale);
  mapBroadcast(context, context.outputs[0].dimensions, context.inputs[0].as<int16_t>(),
               context.inputs[1].as<int16_t>(), context.outputs[0].as<int16_t>(),
               [=](int16_t value, int16_t factor) {
                 const int32_t product = value * factor;
                 const int32_t scaled =
                     value < 0 ? multiply(product, negative) : multiply(value, positive);
                 return static_cast<int16_t>(std::clamp(scaled, -32768, 32767));
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
