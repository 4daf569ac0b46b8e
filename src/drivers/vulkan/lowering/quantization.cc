// SPDX-License-Identifier: Apache-2.0
// QUANTIZE and DEQUANTIZE.
#include <utility>

#include "drivers/vulkan/lowering/casts.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;

bool isByte(OperandType type) {
  return type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned;
}

Status refuse(const LoweringContext& context) {
  return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {} to {}.",
              graph::nameOf(context.operation().operation->type),
              graph::nameOf(context.input(0).type()), graph::nameOf(context.output(0).type()));
}

}  // namespace

Status lowerQuantize(LoweringContext& context) {
  const OperandType from = context.input(0).type();
  const OperandType to = context.output(0).type();
  if (!isByte(to)) return refuse(context);
  if (isByte(from)) return addTable(context, false);
  const bool isHalf = from == OperandType::kTensorFloat16;
  if (from != OperandType::kTensorFloat32 && !isHalf) return refuse(context);
  HEARTH_TRY(context.bitsSuffix(1));
  const uint64_t count = context.output(0).elementCount();
  TensorId input = context.inputTensor(0);
  if (isHalf) {
    input = context.addTemporary(count * sizeof(float));
    HEARTH_TRY(addWidening(context, context.inputTensor(0), input, count));
  }
  const TensorId steps = context.addConstant(kStepBytes, [operation = context.operation()] {
    // Of float32 numbers, whatever the input is.
    graph::Operand wide = *operation.inputs[0].operand;
    wide.type = OperandType::kTensorFloat32;
    ops::OperationContext widened = operation;
    widened.inputs[0].operand = &wide;
    return realSteps(std::move(widened));
  });
  Dispatch dispatch;
  dispatch.shader = "quantize.f32";
  dispatch.bindings = {{input}, {context.outputTensor(0), true}, {steps}};
  dispatch.parameters = {static_cast<uint32_t>(count), bitsOf(lowestStored(to)),
                         bitsOf(context.output(0).operand->zeroPoint)};
  return context.addRow(std::move(dispatch), count);
}

Status lowerDequantize(LoweringContext& context) {
  if (context.input(0).type() == OperandType::kTensorFloat16) {
    if (context.output(0).type() != OperandType::kTensorFloat32) return refuse(context);
    return addWidening(context, context.inputTensor(0), context.outputTensor(0),
                       context.output(0).elementCount());
  }
  const bool isOfBytes =
      isByte(context.input(0).type()) || context.input(0).type() == OperandType::kTensorQuant8Symm;
  const OperandType to = context.output(0).type();
  if (!isOfBytes || graph::isQuantized(to)) return refuse(context);
  HEARTH_TRY(context.bitsSuffix(1));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(to));
  const TensorId table =
      context.addConstant(256 * graph::elementSize(to),
                          [operation = context.operation()] { return tabulate(operation); });
  Dispatch dispatch;
  dispatch.shader = "dequantize." + suffix;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}, {table}};
  const uint64_t count = context.output(0).elementCount();
  dispatch.parameters = {static_cast<uint32_t>(count)};
  return context.addRow(std::move(dispatch), count);
}

}  // namespace hearth::vulkan
