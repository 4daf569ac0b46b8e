// SPDX-License-Identifier: Apache-2.0
#include "ops/quantization.h"

#include <cmath>

namespace hearth::ops {

QuantizedRange quantizedRange(OperandType type) {
  switch (type) {
    case OperandType::kTensorQuant8Asymm:
      return {0, 255};
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
      return {-128, 127};
    case OperandType::kTensorQuant16Asymm:
      return {0, 65535};
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      return {-32768, 32767};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

int32_t quantize(double real, const graph::Operand& operand) {
  const QuantizedRange range = quantizedRange(operand.type);
  return roundAndClamp(real / stepOf(operand), operand.zeroPoint, range.lowest, range.highest);
}

Status checkBiasQuantization(const OperationContext& context, size_t input, size_t filter,
                             size_t bias) {
  const graph::Operand& biasOperand = *context.inputs[bias].operand;
  const graph::Operand& filterOperand = *context.inputs[filter].operand;
  if (biasOperand.zeroPoint != 0)
    return fail(ErrorCode::kBadData,
                "The bias (input {}) of {} has the zero point {}, it must be "
                "0.",
                bias, context.describe(), biasOperand.zeroPoint);
  if (!filterOperand.perChannel.scales.empty()) return {};
  const double expected = static_cast<double>(context.inputs[input].operand->scale) *
                          static_cast<double>(filterOperand.scale);
  if (std::abs(biasOperand.scale - expected) <= kBiasScaleTolerance * expected) return {};
  return fail(ErrorCode::kBadData,
              "The bias (input {}) of {} has the scale {}, the product of input and filter scales "
              "is {}.",
              bias, context.describe(), biasOperand.scale, expected);
}

}  // namespace hearth::ops
