// SPDX-License-Identifier: Apache-2.0
#include "ops/reshape.h"

#include <cstring>
#include <optional>

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Result<Dimensions> reshapedDimensions(const OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(1));
  const uint64_t count = context.inputs[0].elementCount();
  std::optional<size_t> open;
  uint64_t product = 1;
  Dimensions dimensions;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (open)
        return fail(ErrorCode::kBadData, "The shape of {} is -1 at {} and at {}.",
                    context.describe(), *open, i);
      open = i;
      dimensions.push_back(0);
      continue;
    }
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, shape[i]));
    if (__builtin_mul_overflow(product, uint64_t{size}, &product))
      return fail(ErrorCode::kBadData, "The shape of {} has too many elements.",
                  context.describe());
    dimensions.push_back(size);
  }
  if (open) {
    if (product == 0 || count % product != 0)
      return fail(ErrorCode::kBadData, "{} cannot divide {} elements by {}.", context.describe(),
                  count, product);
    HEARTH_ASSIGN(dimensions[*open], toDimension(context, static_cast<int64_t>(count / product)));
    return dimensions;
  }
  if (product != count)
    return fail(ErrorCode::kBadData, "{} asks for the shape {} of {} elements, its input has {}.",
                context.describe(), graph::describeDimensions(dimensions), product, count);
  return dimensions;
}

Result<Dimensions> squeezedDimensions(const OperationContext& context) {
  const Dimensions& input = context.inputs[0].dimensions;
  std::vector<bool> removed(input.size(), false);
  if (context.hasInput(1) && context.inputs[1].elementCount() != 0) {
    HEARTH_ASSIGN(const std::vector<int64_t> axes, context.intVector(1));
    for (const int64_t value : axes) {
      HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, input.size()));
      if (input[axis] != 1)
        return fail(ErrorCode::kBadData, "{} removes dimension {} of {}, which is {}.",
                    context.describe(), axis, graph::describeDimensions(input), input[axis]);
      removed[axis] = true;
    }
  } else {
    for (size_t i = 0; i < input.size(); ++i) removed[i] = input[i] == 1;
  }
  Dimensions dimensions;
  for (size_t i = 0; i < input.size(); ++i)
    if (!removed[i]) dimensions.push_back(input[i]);
  return keepRankAboveZero(context, std::move(dimensions));
}

Result<Dimensions> expandedDimensions(const OperationContext& context) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(1));
  Dimensions dimensions = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, dimensions.size() + 1));
  dimensions.insert(dimensions.begin() + static_cast<ptrdiff_t>(axis), 1);
  return dimensions;
}

Status validate(const Signature& signature) {
  const bool isSqueeze = signature.type() == OperationType::kSqueeze;
  const bool isExpand = signature.type() == OperationType::kExpandDims;
  HEARTH_TRY(signature.counts(isSqueeze ? 1 : 2, 2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 0, kMaximumRank));
  if (isExpand) {
    HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  } else {
    if (!isSqueeze || signature.hasInput(1))
      HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, 1));
  }
  return signature.outputLike(0, 0);
}

Status execute(OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  if (output.data != input.data)
    std::memmove(output.data, input.data, input.elementCount() * graph::elementSize(input.type()));
  return {};
}

}  // namespace

Result<ReshapeParameters> parseReshape(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  const auto dimensions = [&]() -> Result<Dimensions> {
    switch (context.operation->type) {
      case OperationType::kSqueeze:
        return squeezedDimensions(context);
      case OperationType::kExpandDims:
        return expandedDimensions(context);
      default:
        return reshapedDimensions(context);
    }
  };
  HEARTH_ASSIGN(ReshapeParameters parameters, dimensions().transform([](Dimensions found) {
    return ReshapeParameters{std::move(found)};
  }));
  return parameters;
}

constexpr auto kPrepare = prepareParsedShape<parseReshape>;

const OperationDefinition kReshapeOperation = {OperationType::kReshape, validate, kPrepare,
                                               execute};
const OperationDefinition kSqueezeOperation = {OperationType::kSqueeze, validate, kPrepare,
                                               execute};
const OperationDefinition kExpandDimsOperation = {OperationType::kExpandDims, validate, kPrepare,
                                                  execute};

}  // namespace hearth::ops
