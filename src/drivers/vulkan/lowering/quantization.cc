// SPDX-License-Identifier: Apache-2.0
// QUANTIZE, DEQUANTIZE, and CAST of real numbers.
#include <utility>

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

// float16 numbers to float32, or back.
Status addConversion(LoweringContext& context) {
  HEARTH_TRY(context.numberSuffix(context.output(0).type()));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(context.input(0).type()));
  Dispatch dispatch;
  dispatch.shader = "convert." + suffix;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  const uint64_t count = context.output(0).elementCount();
  dispatch.parameters = {static_cast<uint32_t>(count)};
  return context.addRow(std::move(dispatch), count);
}

bool isConversion(const LoweringContext& context) {
  const OperandType from = context.input(0).type();
  const OperandType to = context.output(0).type();
  return (from == OperandType::kTensorFloat16 && to == OperandType::kTensorFloat32) ||
         (from == OperandType::kTensorFloat32 && to == OperandType::kTensorFloat16);
}

}  // namespace

Status lowerCast(LoweringContext& context) {
  return isConversion(context) ? addConversion(context) : refuse(context);
}

Status lowerQuantize(LoweringContext& context) {
  const OperandType from = context.input(0).type();
  const OperandType to = context.output(0).type();
  if (!isByte(to)) return refuse(context);
  if (isByte(from)) return addTable(context, false);
  if (from != OperandType::kTensorFloat32) return refuse(context);
  HEARTH_TRY(context.bitsSuffix(1));
  const TensorId steps = context.addConstant(
      kStepBytes, [operation = context.operation()] { return realSteps(operation); });
  Dispatch dispatch;
  dispatch.shader = "quantize.f32";
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}, {steps}};
  const uint64_t count = context.output(0).elementCount();
  dispatch.parameters = {static_cast<uint32_t>(count), bitsOf(lowestStored(to)),
                         bitsOf(context.output(0).operand->zeroPoint)};
  return context.addRow(std::move(dispatch), count);
}

Status lowerDequantize(LoweringContext& context) {
  if (isConversion(context)) return addConversion(context);
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
