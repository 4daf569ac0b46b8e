// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/layer_arithmetic.h"

namespace hearth::cpu {

using graph::OperandType;

bool typesFit(PlanBuilder* builder, uint32_t input, uint32_t filter, uint32_t bias,
              uint32_t output) {
  const OperandType type = builder->operand(input).type;
  const graph::Operand& weights = builder->operand(filter);
  if (!builder->constants().isWeight(filter) || type != builder->operand(output).type) return false;
  if (bias != UINT32_MAX && !builder->constants().isWeight(bias)) return false;
  switch (type) {
    case OperandType::kTensorFloat32:
    case OperandType::kTensorQuant8Asymm:
      return weights.type == type;
    case OperandType::kTensorQuant8AsymmSigned:
      return weights.type == type ? weights.zeroPoint == 0
                                  : weights.type == OperandType::kTensorQuant8SymmPerChannel;
    default:
      return false;
  }
}

}  // namespace hearth::cpu
