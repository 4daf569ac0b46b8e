// SPDX-License-Identifier: Apache-2.0
#include "ops/symmetric16.h"

#include "ops/convolution.h"

namespace hearth::ops {

bool isSymmetric16Layer(const OperationContext& context, uint64_t products) {
  // Each product is at most 2^22.
  constexpr uint64_t kMostProducts = 511;
  const graph::Operand& filter = *context.inputs[1].operand;
  const bool isByte = filter.type == OperandType::kTensorQuant8AsymmSigned ||
                      filter.type == OperandType::kTensorQuant8Symm ||
                      filter.type == OperandType::kTensorQuant8SymmPerChannel;
  return context.inputs[0].type() == OperandType::kTensorQuant16Symm && isByte &&
         filter.zeroPoint == 0 && products <= kMostProducts;
}

Symmetric16Output::Symmetric16Output(const OperationContext& context, FusedActivation activation,
                                     size_t channels)
    : bias_(channels), factors_(channels) {
  const Requantization requantization = makeRequantization(context, activation);
  const std::vector<double>& multipliers = requantization.multipliers;
  for (size_t i = 0; i < channels; ++i) {
    factors_[i] = multipliers.size() == 1 ? multipliers[0] : multipliers[i];
    if (!context.hasInput(2)) continue;
    const Tensor& bias = context.inputs[2];
    bias_[i] = bias.type() == OperandType::kTensorInt64 ? static_cast<double>(bias.as<int64_t>()[i])
                                                        : bias.as<int32_t>()[i];
  }
  lowest_ = requantization.lowest;
  highest_ = requantization.highest;
}

}  // namespace hearth::ops
