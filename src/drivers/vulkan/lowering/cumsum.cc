// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"
#include "ops/validation.h"

namespace hearth::vulkan {

Status lowerCumsum(LoweringContext& context) {
  const ops::Tensor& input = context.input(0);
  std::string suffix = "i32";
  if (input.type() != graph::OperandType::kTensorInt32) {
    HEARTH_ASSIGN(suffix, context.numberSuffix(input.type()));
  }
  HEARTH_ASSIGN(const int32_t axisArgument, context.operation().scalar<int32_t>(1));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(context.operation(), axisArgument, input.rank()));
  HEARTH_ASSIGN(const bool isExclusive, context.operation().scalar<bool>(2));
  HEARTH_ASSIGN(const bool isReverse, context.operation().scalar<bool>(3));
  uint32_t step = 1;
  for (size_t i = axis + 1; i < input.rank(); ++i) step *= input.dimensions[i];
  const uint32_t length = input.dimensions[axis];
  const auto rows = static_cast<uint32_t>(input.elementCount() / length);
  Dispatch dispatch;
  dispatch.shader = "cumsum." + suffix;
  dispatch.constant = (isExclusive ? 1u : 0u) | (isReverse ? 2u : 0u);
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {rows, length, step};
  return context.addRow(std::move(dispatch), rows);
}

}  // namespace hearth::vulkan
