// SPDX-License-Identifier: Apache-2.0
// QUANTIZE: real numbers to a quantised type, or one quantised type to another (TFLite).
#include "base/vector_dispatch.h"
#include "ops/operation.h"
#include "ops/quantization.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kQuantizedTensors = kQuant8Tensors | OperandType::kTensorQuant8Symm |
                                      OperandType::kTensorQuant16Symm |
                                      OperandType::kTensorQuant16Asymm | OperandType::kTensorInt16;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors | kQuantizedTensors));
  HEARTH_TRY(signature.outputType(0, kQuantizedTensors));
  // graph::validate() allows a TENSOR_INT16 without a scale.
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

// Rounds halves away from zero; NaN becomes the zero point. Calls no mathematics library, so that
// compilers can vectorise it.
template <typename T>
void quantizeValues(const float* source, const graph::Operand& operand, T* target, size_t count) {
  const QuantizedRange range = quantizedRange(operand.type);
  const float lowest = static_cast<float>(range.lowest - operand.zeroPoint);
  const float highest = static_cast<float>(range.highest - operand.zeroPoint);
  const float scale = operand.scale;
  const int32_t zeroPoint = operand.zeroPoint;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      float value = source[i] / scale;
      value = value == value ? value : 0.0f;
      value = value < lowest ? lowest : value;
      value = value > highest ? highest : value;
      target[i] = static_cast<T>(roundSmall(value) + zeroPoint);
    }
  });
}

template <typename T>
Status quantizeInto(const OperationContext& context) {
  const RealInput input(context.inputs[0]);
  const Tensor& output = context.outputs[0];
  threads::forRanges(context.threadPool, input.size(), threads::grainOf(sizeof(float)),
                     [&](uint64_t begin, uint64_t end) {
                       quantizeValues(input.data() + begin, *output.operand, output.as<T>() + begin,
                                      end - begin);
                     });
  return {};
}

Status execute(OperationContext& context) {
  switch (context.outputs[0].type()) {
    case OperandType::kTensorQuant8Asymm:
      return quantizeInto<uint8_t>(context);
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return quantizeInto<int8_t>(context);
    case OperandType::kTensorQuant16Asymm:
      return quantizeInto<uint16_t>(context);
    default:
      return quantizeInto<int16_t>(context);
  }
}

}  // namespace

const OperationDefinition kQuantizeOperation = {OperationType::kQuantize, validate, prepare,
                                                execute};

}  // namespace hearth::ops
