// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH and its inverse DEPTH_TO_SPACE.
#include "ops/space_to_depth.h"

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

bool movesToDepth(const OperationContext& context) {
  return context.operation->type == OperationType::kSpaceToDepth;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 3, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 4, 4));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.optionalInputType(2, OperandType::kBool));
  return signature.outputLike(0, 0);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const SpaceToDepthParameters parameters, parseSpaceToDepth(context));
  const bool toDepth = movesToDepth(context);
  const Tensor& input = context.inputs[0];
  const Dimensions& wideShape = toDepth ? input.dimensions : parameters.dimensions;
  const Dimensions& deepShape = toDepth ? parameters.dimensions : input.dimensions;
  const std::vector<int64_t> wide = rowMajorStrides(wideShape);
  const std::vector<int64_t> deep = rowMajorStrides(deepShape);
  const size_t y = parameters.isNchw ? 2 : 1;
  const size_t x = y + 1;
  const size_t c = parameters.isNchw ? 1 : 3;
  const int64_t block = parameters.blockSize;
  const int64_t channels = wideShape[c];
  // The deep channel is (row in block, column in block, wide channel).
  struct Loop {
    int64_t size, wide, deep;
  };
  const Loop positions[] = {{wideShape[0], wide[0], deep[0]},
                            {deepShape[y], wide[y] * block, deep[y]},
                            {block, wide[y], deep[c] * block * channels},
                            {deepShape[x], wide[x] * block, deep[x]},
                            {block, wide[x], deep[c] * channels},
                            {channels, wide[c], deep[c]}};
  std::vector<CopyDimension> loops;
  for (const Loop& loop : positions)
    loops.push_back({loop.size, toDepth ? loop.wide : loop.deep, toDepth ? loop.deep : loop.wide});
  copyStrided(graph::elementSize(input.type()), std::move(loops), input.data,
              context.outputs[0].data, context.threadPool);
  return {};
}

}  // namespace

Result<SpaceToDepthParameters> parseSpaceToDepth(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  if (input.size() != 4)
    return fail(ErrorCode::kBadData, "The input of {} has rank {}, it must be 4.",
                context.describe(), input.size());
  HEARTH_ASSIGN(const int32_t block, context.scalar<int32_t>(1));
  if (block < 1)
    return fail(ErrorCode::kBadData, "The block size of {} is {}, it must be at least 1.",
                context.describe(), block);
  SpaceToDepthParameters parameters;
  parameters.blockSize = static_cast<uint32_t>(block);
  HEARTH_ASSIGN(parameters.isNchw, context.scalar<bool>(2, false));
  const size_t y = parameters.isNchw ? 2 : 1;
  const size_t c = parameters.isNchw ? 1 : 3;
  const int64_t area = int64_t{block} * block;
  parameters.dimensions = input;
  if (movesToDepth(context)) {
    for (const size_t i : {y, y + 1}) {
      if (input[i] % parameters.blockSize != 0)
        return fail(ErrorCode::kBadData, "{} cannot divide dimension {} of size {} by {}.",
                    context.describe(), i, input[i], block);
      parameters.dimensions[i] = input[i] / parameters.blockSize;
    }
    int64_t depth;
    if (__builtin_mul_overflow(area, int64_t{input[c]}, &depth)) depth = -1;
    HEARTH_ASSIGN(parameters.dimensions[c], toDimension(context, depth));
    return parameters;
  }
  if (input[c] % area != 0)
    return fail(ErrorCode::kBadData, "{} cannot divide the {} channels by {} * {}.",
                context.describe(), input[c], block, block);
  parameters.dimensions[c] = static_cast<uint32_t>(input[c] / area);
  for (const size_t i : {y, y + 1}) {
    HEARTH_ASSIGN(parameters.dimensions[i], toDimension(context, int64_t{input[i]} * block));
  }
  return parameters;
}

const OperationDefinition kSpaceToDepthOperation = {OperationType::kSpaceToDepth, validate,
                                                    prepareParsedShape<parseSpaceToDepth>, execute};
const OperationDefinition kDepthToSpaceOperation = {OperationType::kDepthToSpace, validate,
                                                    prepareParsedShape<parseSpaceToDepth>, execute};

}  // namespace hearth::ops
