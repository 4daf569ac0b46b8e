// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <algorithm>
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {

Status lowerSoftmax(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SoftmaxParameters p, ops::parseSoftmax(context.operation()));
  const ops::Tensor& input = context.input(0);
  if (graph::isQuantized(input.type()))
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(input.type()));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(input.type()));
  uint32_t step = 1;
  for (size_t i = p.axis + 1; i < input.rank(); ++i) step *= input.dimensions[i];
  const uint32_t length = input.dimensions[p.axis];
  const auto rows = static_cast<uint32_t>(input.elementCount() / length);
  Dispatch dispatch;
  dispatch.shader = "softmax." + suffix;
  dispatch.constant = context.operation().operation->type == ops::OperationType::kLogSoftmax;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {rows, length, step, bitsOf(p.beta)};
  constexpr uint32_t kRowsAcross = 32768;
  const uint32_t across = std::min(rows, kRowsAcross);
  dispatch.groups = {across, (rows + across - 1) / across, 1};
  return context.add(std::move(dispatch));
}

}  // namespace hearth::vulkan
