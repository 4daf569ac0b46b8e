// SPDX-License-Identifier: Apache-2.0
#include "ops/resize.h"

#include <cmath>

#include "ops/output_shape.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// A side is given in pixels (INT32, or TENSOR_INT32 of one element for a size that is known only at
// run time) or as a factor of the input's side (FLOAT32, FLOAT16).
Result<uint32_t> outputSide(const OperationContext& context, size_t index, uint32_t side) {
  int64_t size;
  if (context.inputs[index].type() == OperandType::kTensorInt32) {
    HEARTH_TRY(requireOneElement(context, index));
    HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(index));
    size = values[0];
  } else if (context.inputs[index].type() == OperandType::kInt32) {
    HEARTH_ASSIGN(size, context.scalar<int32_t>(index));
  } else {
    HEARTH_ASSIGN(const float factor, floatScalar(context, index));
    const float product = std::floor(static_cast<float>(side) * factor);
    if (!(product >= 1.0f && product <= 0x1p31f))
      return fail(ErrorCode::kBadData, "{} scales a side of {} pixels by {} (input {}).",
                  context.describe(), side, factor, index);
    size = static_cast<int64_t>(product);
  }
  if (size < 1)
    return fail(ErrorCode::kBadData, "{} resizes to {} pixels (input {}), it must be at least 1.",
                context.describe(), size, index);
  return toDimension(context, size);
}

}  // namespace

Result<ResizeParameters> parseResize(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_TRY(requireRank(context, 0, 4, 4));
  const Dimensions& input = context.inputs[0].dimensions;
  ResizeParameters parameters;
  HEARTH_ASSIGN(parameters.isNchw, context.scalar<bool>(3, false));
  HEARTH_ASSIGN(parameters.alignCorners, context.scalar<bool>(4, false));
  HEARTH_ASSIGN(parameters.halfPixelCenters, context.scalar<bool>(5, false));
  if (parameters.alignCorners && parameters.halfPixelCenters)
    return fail(ErrorCode::kBadData, "{} sets both align_corners and half_pixel_centers.",
                context.describe());
  const size_t y = parameters.isNchw ? 2 : 1;
  const size_t x = y + 1;
  if (input[y] == 0 || input[x] == 0)
    return fail(ErrorCode::kBadData, "{} has an input of {} by {} pixels.", context.describe(),
                input[y], input[x]);
  // In NNAPI the width comes first.
  HEARTH_ASSIGN(parameters.outputWidth, outputSide(context, 1, input[x]));
  HEARTH_ASSIGN(parameters.outputHeight, outputSide(context, 2, input[y]));
  parameters.dimensions = input;
  parameters.dimensions[y] = parameters.outputHeight;
  parameters.dimensions[x] = parameters.outputWidth;
  return parameters;
}

float resizeScale(uint32_t input, uint32_t output, bool alignCorners) {
  if (alignCorners && output > 1)
    return static_cast<float>(input - 1) / static_cast<float>(output - 1);
  return static_cast<float>(input) / static_cast<float>(output);
}

Status validateResize(const Signature& signature) {
  const bool isNearest = signature.type() == OperationType::kResizeNearestNeighbor;
  HEARTH_TRY(signature.counts(isNearest ? 4 : 3, 6, 1));
  HEARTH_TRY(signature.inputTensor(0,
                                   isNearest ? kMovableTensors
                                             : kFloatTensors | kQuant8Tensors |
                                                   OperandType::kTensorQuant16Symm |
                                                   OperandType::kTensorInt16,
                                   4, 4));
  for (const size_t i : {1, 2})
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32 | OperandType::kFloat32 |
                                          OperandType::kFloat16 | OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputTypeLike(2, 1));
  for (const size_t i : {3, 4, 5}) HEARTH_TRY(signature.optionalInputType(i, OperandType::kBool));
  return signature.outputLike(0, 0);
}

Status prepareResize(OperationContext& context) {
  HEARTH_ASSIGN(ResizeParameters parameters, parseResize(context));
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

}  // namespace hearth::ops
