// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/vector_dispatch.h"
#include "ops/half.h"
#include "ops/operation.h"
#include "ops/prepare.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "ops/weight_rows.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  // TFLite dequantises float16 and 4-bit integers, too.
  HEARTH_TRY(signature.inputType(0, kRealTensors));
  HEARTH_TRY(validateWeightScales(signature, 0));
  return signature.outputType(0, kFloatTensors);
}

// Dequantises directly into the output.
template <typename T>
Status dequantizeInto(const OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const T* source = input.as<T>();
  float* target = context.outputs[0].as<float>();
  const float scale = input.operand->scale;
  const int32_t zeroPoint = input.operand->zeroPoint;
  threads::forRanges(context.threadPool, input.elementCount(), threads::grainOf(sizeof(float)),
                     [=](uint64_t begin, uint64_t end) {
                       base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
                         for (uint64_t i = begin; i < end; ++i)
                           target[i] = scale * static_cast<float>(source[i] - zeroPoint);
                       });
                     });
  return {};
}

Status widenInto(const OperationContext& context) {
  const Half* source = context.inputs[0].as<Half>();
  float* target = context.outputs[0].as<float>();
  threads::forRanges(context.threadPool, context.inputs[0].elementCount(),
                     threads::grainOf(sizeof(float)), [=](uint64_t begin, uint64_t end) {
                       widenHalves(source + begin, end - begin, target + begin);
                     });
  return {};
}

Status execute(OperationContext& context) {
  if (context.outputs[0].type() == OperandType::kTensorFloat32) {
    switch (context.inputs[0].type()) {
      case OperandType::kTensorFloat16:
        return widenInto(context);
      case OperandType::kTensorQuant8Asymm:
        return dequantizeInto<uint8_t>(context);
      case OperandType::kTensorQuant8AsymmSigned:
      case OperandType::kTensorQuant8Symm:
        return dequantizeInto<int8_t>(context);
      case OperandType::kTensorQuant16Asymm:
        return dequantizeInto<uint16_t>(context);
      case OperandType::kTensorQuant16Symm:
      case OperandType::kTensorInt16:
        return dequantizeInto<int16_t>(context);
      default:
        break;
    }
  }
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  std::copy_n(input.data(), input.size(), output.data());
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kDequantizeOperation = {OperationType::kDequantize, validate,
                                                  prepareLikeOnlyInput, execute};

}  // namespace hearth::ops
