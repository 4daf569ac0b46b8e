// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/casts.h"

#include <string>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/tables.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;

// How the shader names elements of this type; empty for one that it lacks.
std::string_view storedTypeOf(OperandType type) {
  switch (type) {
    case OperandType::kTensorFloat32:
      return "f32";
    case OperandType::kTensorFloat16:
      return "f16";
    case OperandType::kTensorInt32:
      return "i32";
    case OperandType::kTensorQuant8Asymm:
    case OperandType::kTensorBool8:
      return "u8";
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return "i8";
    default:
      return {};
  }
}

Status addCast(LoweringContext& context, std::string_view types, TensorId from, TensorId to,
               uint64_t count, bool isTruth) {
  if (types.contains("f16")) HEARTH_TRY(context.bitsSuffix(2));
  if (types.contains("8")) HEARTH_TRY(context.bitsSuffix(1));
  Dispatch dispatch;
  dispatch.shader = "cast." + std::string(types);
  dispatch.constant = isTruth ? 1 : 0;
  dispatch.bindings = {{from}, {to, true}};
  dispatch.parameters = {static_cast<uint32_t>(count)};
  return context.addRow(std::move(dispatch), count);
}

}  // namespace

Status addCast(LoweringContext& context, std::string_view types, TensorId from, TensorId to,
               uint64_t count) {
  return addCast(context, types, from, to, count, false);
}

Status addWidening(LoweringContext& context, TensorId from, TensorId to, uint64_t count) {
  return addCast(context, "f16f32", from, to, count);
}

Status addNarrowing(LoweringContext& context, TensorId from, TensorId to, uint64_t count) {
  return addCast(context, "f32f16", from, to, count);
}

Status lowerCast(LoweringContext& context) {
  const graph::Operand& from = *context.input(0).operand;
  const graph::Operand& to = *context.output(0).operand;
  const uint64_t count = context.output(0).elementCount();
  if (from.type == to.type) {
    const auto elements = static_cast<uint32_t>(count);
    return addCopy(context, graph::elementSize(from),
                   {context.inputTensor(0), context.outputTensor(0), {{elements, 1, 1}}});
  }
  const std::string_view first = storedTypeOf(from.type);
  const std::string_view second = storedTypeOf(to.type);
  if (first.empty() || second.empty())
    return fail(ErrorCode::kUnsupported, "The GPU driver has no CAST of {} to {}.",
                graph::nameOf(from.type), graph::nameOf(to.type));
  if (first.ends_with("8") && second.ends_with("8")) return addTable(context, false);
  return addCast(context, std::string(first) + std::string(second), context.inputTensor(0),
                 context.outputTensor(0), count, to.type == OperandType::kTensorBool8);
}

}  // namespace hearth::vulkan
