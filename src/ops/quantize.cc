// SPDX-License-Identifier: Apache-2.0
// QUANTIZE: real numbers to a quantised type, or one quantised type to another (TFLite).
#include <algorithm>
#include <cmath>

#include "ops/half.h"
#include "ops/operation.h"
#include "ops/quantization.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kQuantizedTensors = kQuant8Tensors | OperandType::kTensorQuant8Symm |
                                      OperandType::kTensorQuant16Symm |
                                      OperandType::kTensorQuant16Asymm | OperandType::kTensorInt16;

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors | kQuantizedTensors));
  HEARTH_TRY(signature.outputType(0, kQuantizedTensors));
  // graph::validate() leaves TENSOR_INT16 without a scale alone.
  for (const graph::Operand* operand : {&signature.input(0), &signature.output(0)})
    if (kQuantizedTensors.contains(operand->type) && !(operand->scale > 0.0f))
      return fail(ErrorCode::kBadData, "An argument of {} is {} without a scale.",
                  signature.describe(), graph::describe(*operand));
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

// Halves go away from zero, NaN to the zero point. No call into the mathematics library, so that
// compilers can vectorise it.
template <typename T>
void quantizeValues(const RealInput& input, const graph::Operand& operand, T* target) {
  constexpr float kBelowHalf = 0x1.fffffep-2f;
  const QuantizedRange range = quantizedRange(operand.type);
  const float lowest = static_cast<float>(range.lowest - operand.zeroPoint);
  const float highest = static_cast<float>(range.highest - operand.zeroPoint);
  const float* source = input.data();
  const size_t count = input.size();
  const float scale = operand.scale;
  const int32_t zeroPoint = operand.zeroPoint;
  for (size_t i = 0; i < count; ++i) {
    float value = source[i] / scale;
    value = value == value ? value : 0.0f;
    value = value < lowest ? lowest : value;
    value = value > highest ? highest : value;
    value += value < 0.0f ? -kBelowHalf : kBelowHalf;
    target[i] = static_cast<T>(static_cast<int32_t>(value) + zeroPoint);
  }
}

Status execute(OperationContext& context) {
  const RealInput input(context.inputs[0]);
  const Tensor& output = context.outputs[0];
  switch (output.type()) {
    case OperandType::kTensorQuant8Asymm:
      quantizeValues(input, *output.operand, output.as<uint8_t>());
      return {};
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      quantizeValues(input, *output.operand, output.as<int8_t>());
      return {};
    case OperandType::kTensorQuant16Asymm:
      quantizeValues(input, *output.operand, output.as<uint16_t>());
      return {};
    default:
      quantizeValues(input, *output.operand, output.as<int16_t>());
      return {};
  }
}

}  // namespace

const OperationDefinition kQuantizeOperation = {OperationType::kQuantize, validate, prepare,
                                                execute};

}  // namespace hearth::ops
