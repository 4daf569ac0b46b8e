// SPDX-License-Identifier: Apache-2.0
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// Input 0 is the axis; the tensors follow.
Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, context.inputs.size(), 1));
  const Dimensions& first = context.inputs[1].dimensions;
  for (size_t i = 2; i < context.inputs.size(); ++i)
    if (context.inputs[i].dimensions != first)
      return fail(ErrorCode::kBadData, "Input {} of {} has the shape {}, input 1 has {}.", i,
                  context.describe(), graph::describeDimensions(context.inputs[i].dimensions),
                  graph::describeDimensions(first));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(0));
  return resolveAxis(context, axis, first.size() + 1);
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, SIZE_MAX, 1));
  HEARTH_TRY(signature.inputType(0, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(1, kMovedTensors));
  HEARTH_TRY(signature.outputTypeLike(0, 1));
  for (size_t i = 1; i < signature.inputCount(); ++i) {
    HEARTH_TRY(signature.inputTypeLike(i, 1));
    HEARTH_TRY(signature.inputRank(i, 0, kMaximumRank - 1));
    HEARTH_TRY(signature.outputQuantizationLike(0, i));
  }
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  Dimensions dimensions = context.inputs[1].dimensions;
  dimensions.insert(dimensions.begin() + static_cast<ptrdiff_t>(axis),
                    static_cast<uint32_t>(context.inputs.size() - 1));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  const Dimensions& dimensions = context.inputs[1].dimensions;
  const Tensor& output = context.outputs[0];
  const size_t element = graph::elementSize(output.type());
  const size_t count = context.inputs.size() - 1;
  int64_t outer = 1;
  int64_t row = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) (i < axis ? outer : row) *= dimensions[i];
  const int64_t stride = row * static_cast<int64_t>(count);
  for (size_t i = 0; i < count; ++i)
    copyStrided(element, {{outer, row, stride}, {row, 1, 1}}, context.inputs[i + 1].data,
                output.as<uint8_t>() + i * static_cast<size_t>(row) * element, context.threadPool);
  return {};
}

}  // namespace

const OperationDefinition kPackOperation = {OperationType::kPack, validate, prepare, execute};

}  // namespace hearth::ops
