// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/hybrid_weights.h"

#include <algorithm>
#include <limits>
#include <span>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "graph/float_range.h"
#include "ops/int4.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

bool isSymmetric(const graph::Operand& filter) {
  switch (filter.type) {
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return filter.zeroPoint == 0;
    case OperandType::kTensorQuant8SymmPerChannel:
      return filter.perChannel.channelDim == 0;
    case OperandType::kTensorInt4:
      return filter.zeroPoint == 0 &&
             (filter.perChannel.scales.empty() || filter.perChannel.channelDim == 0);
    default:
      return false;
  }
}

}  // namespace

std::optional<HybridWeights> hybridWeights(PlanBuilder* builder, uint32_t input, uint32_t filter,
                                           uint32_t bias, uint32_t output, size_t outputs) {
  const graph::Operand& weights = builder->operand(filter);
  if (builder->operand(input).type != OperandType::kTensorFloat32 ||
      builder->operand(output).type != OperandType::kTensorFloat32 ||
      !builder->constants().isWeight(filter) || !isSymmetric(weights))
    return std::nullopt;
  if (bias != UINT32_MAX && (!builder->constants().isWeight(bias) ||
                             builder->operand(bias).type != OperandType::kTensorFloat32))
    return std::nullopt;
  HybridWeights found;
  found.isInt4 = weights.type == OperandType::kTensorInt4;
  const graph::ChannelScales& scales = weights.perChannel.scales;
  if (!scales.empty() && scales.size() != outputs) return std::nullopt;
  // XNNPACK takes only scales that are normal numbers.
  using Limits = std::numeric_limits<float>;
  if (scales.empty() ? !graph::areWithin({&weights.scale, 1}, Limits::min(), Limits::max())
                     : !scales.areWithin(Limits::min(), Limits::max()))
    return std::nullopt;
  found.operand = &weights;
  return found;
}

std::vector<int8_t> widenInt4(const uint8_t* pairs, size_t count) {
  std::vector<int8_t> numbers(count + kReadSlack);
  for (size_t i = 0; i < count; ++i) numbers[i] = ops::int4At(pairs, i);
  return numbers;
}

}  // namespace hearth::cpu
