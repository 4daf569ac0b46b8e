// SPDX-License-Identifier: Apache-2.0
// ARGMAX and ARGMIN, with places of 32 or 64 bits.
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"
#include "ops/validation.h"

namespace hearth::vulkan {

Status lowerArgExtreme(LoweringContext& context) {
  using ops::OperationType;
  const OperationType operation = context.operation().operation->type;
  const ops::Tensor& input = context.input(0);
  HEARTH_ASSIGN(const int32_t axisArgument, context.operation().scalar<int32_t>(1));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(context.operation(), axisArgument, input.rank()));
  std::string suffix = "i32";
  if (input.type() != graph::OperandType::kTensorInt32) {
    HEARTH_ASSIGN(suffix, context.numberSuffix(input.type()));
  }
  uint32_t step = 1;
  for (size_t i = axis + 1; i < input.rank(); ++i) step *= input.dimensions[i];
  const uint32_t length = input.dimensions[axis];
  const auto rows = static_cast<uint32_t>(input.elementCount() / length);
  const bool isLeast = operation == OperationType::kArgmin || operation == OperationType::kArgmin64;
  const bool isWide = context.output(0).type() == graph::OperandType::kTensorInt64;
  Dispatch dispatch;
  dispatch.shader = "arg_extreme." + suffix;
  dispatch.constant = isLeast ? 1 : 0;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {rows, length, step, isWide ? 2u : 1u};
  return context.addRow(std::move(dispatch), rows);
}

}  // namespace hearth::vulkan
