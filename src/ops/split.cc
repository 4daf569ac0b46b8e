// SPDX-License-Identifier: Apache-2.0
#include "ops/split.h"

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 3, 1, SIZE_MAX));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(2, OperandType::kInt32));
  for (size_t i = 0; i < signature.outputCount(); ++i) {
    HEARTH_TRY(signature.outputTypeLike(i, 0));
    HEARTH_TRY(signature.outputQuantizationLike(i, 0));
  }
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const SplitParameters parameters, parseSplit(context));
  for (size_t i = 0; i < parameters.count; ++i)
    HEARTH_TRY(context.setOutputDimensions(i, parameters.dimensions));
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const SplitParameters parameters, parseSplit(context));
  const Tensor& input = context.inputs[0];
  int64_t outer = 1;
  for (size_t i = 0; i < parameters.axis; ++i) outer *= parameters.dimensions[i];
  int64_t row = 1;
  for (size_t i = parameters.axis; i < parameters.dimensions.size(); ++i)
    row *= parameters.dimensions[i];
  const size_t element = graph::elementSize(input.type());
  const int64_t stride = row * static_cast<int64_t>(parameters.count);
  for (size_t i = 0; i < parameters.count; ++i) {
    if (!context.hasOutput(i)) continue;
    copyStrided(element, {{outer, stride, row}, {row, 1, 1}},
                input.as<uint8_t>() + i * static_cast<size_t>(row) * element,
                context.outputs[i].data, context.threadPool);
  }
  return {};
}

}  // namespace

Result<SplitParameters> parseSplit(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  SplitParameters parameters;
  parameters.dimensions = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(parameters.axis, resolveAxis(context, axis, parameters.dimensions.size()));
  HEARTH_ASSIGN(const int32_t count, context.scalar<int32_t>(2));
  if (count <= 0 || static_cast<size_t>(count) != context.outputs.size())
    return fail(ErrorCode::kBadData, "{} splits into {} parts and has {} outputs.",
                context.describe(), count, context.outputs.size());
  parameters.count = static_cast<size_t>(count);
  uint32_t& size = parameters.dimensions[parameters.axis];
  if (size % parameters.count != 0)
    return fail(ErrorCode::kBadData, "{} cannot split dimension {} of size {} into {} parts.",
                context.describe(), parameters.axis, size, parameters.count);
  size /= static_cast<uint32_t>(count);
  return parameters;
}

const OperationDefinition kSplitOperation = {OperationType::kSplit, validate, prepare, execute};

}  // namespace hearth::ops
