// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic, and the choice between two tensors.
#include <array>
#include <utility>

#include "drivers/vulkan/lowering/broadcast.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/concatenation.h"
#include "ops/validation.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using ops::OperationType;

// The constant 0 of compare.comp.
enum class CompareKind : uint32_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

CompareKind compareKindOf(OperationType type) {
  switch (type) {
    case OperationType::kEqual:
      return CompareKind::kEqual;
    case OperationType::kNotEqual:
      return CompareKind::kNotEqual;
    case OperationType::kLess:
      return CompareKind::kLess;
    case OperationType::kLessEqual:
      return CompareKind::kLessEqual;
    case OperationType::kGreater:
      return CompareKind::kGreater;
    default:
      return CompareKind::kGreaterEqual;
  }
}

bool isByte(OperandType type) {
  return type == OperandType::kTensorBool8 || type == OperandType::kTensorQuant8Asymm ||
         type == OperandType::kTensorQuant8AsymmSigned;
}

}  // namespace

Status lowerComparison(LoweringContext& context) {
  const OperandType type = context.input(0).type();
  if (isByte(type)) return addTable(context, true);
  std::string suffix = "i32";
  if (type != OperandType::kTensorInt32) {
    HEARTH_ASSIGN(suffix, context.numberSuffix(type));
  }
  HEARTH_TRY(context.bitsSuffix(1));
  Dispatch dispatch;
  dispatch.shader = "compare." + suffix;
  dispatch.constant = std::to_underlying(compareKindOf(context.operation().operation->type));
  dispatch.bindings = {
      {context.inputTensor(0)}, {context.inputTensor(1)}, {context.outputTensor(0), true}};
  HEARTH_ASSIGN(dispatch.parameters, broadcastParameters(context, {0, 1}));
  dispatch.parameters.insert(dispatch.parameters.end(), {0, 0});
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

Status lowerLogic(LoweringContext& context) {
  return addTable(context, context.operation().operation->type != OperationType::kLogicalNot);
}

Status lowerSelect(LoweringContext& context) {
  const graph::Operand& output = *context.output(0).operand;
  std::array<TensorId, 2> choices = {context.inputTensor(1), context.inputTensor(2)};
  for (size_t i = 0; i < choices.size(); ++i) {
    const ops::Tensor& input = context.input(i + 1);
    if (!graph::isQuantized(output.type) || ops::isSameQuantization(*input.operand, output))
      continue;
    if (graph::elementSize(output) != 1)
      return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of different scales of {}.",
                  graph::nameOf(context.operation().operation->type), graph::nameOf(output.type));
    const TensorId mapped = context.addTemporary(input.elementCount());
    HEARTH_TRY(addByteMap(context, choices[i], mapped, input.elementCount(),
                          ops::requantizedBytes(*input.operand, output)));
    choices[i] = mapped;
  }
  HEARTH_TRY(context.bitsSuffix(1));
  HEARTH_ASSIGN(const std::string suffix, context.bitsSuffix(graph::elementSize(output)));
  Dispatch dispatch;
  dispatch.shader = "select." + suffix;
  dispatch.bindings = {
      {context.inputTensor(0)}, {choices[0]}, {choices[1]}, {context.outputTensor(0), true}};
  HEARTH_ASSIGN(dispatch.parameters, broadcastParameters(context, {0, 1, 2}));
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

}  // namespace hearth::vulkan
