// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO of the extension. Inputs: data, output dimensions.
#include "ops/broadcast.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(1));
  Dimensions dimensions;
  for (const int64_t value : sizes) {
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, value));
    dimensions.push_back(size);
  }
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const Dimensions both, broadcastShapes(context, input, dimensions));
  if (both != dimensions)
    return fail(ErrorCode::kBadData, "{} cannot broadcast {} to {}.", context.describe(),
                graph::describeDimensions(input), graph::describeDimensions(dimensions));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const std::vector<int64_t> from = rowMajorStrides(input.dimensions);
  const std::vector<int64_t> to = rowMajorStrides(output.dimensions);
  const size_t added = output.rank() - input.rank();
  std::vector<CopyDimension> loops;
  for (size_t i = 0; i < to.size(); ++i) {
    if (output.dimensions[i] == 0) return {};
    const bool isRepeated = i < added || input.dimensions[i - added] == 1;
    loops.push_back({output.dimensions[i], isRepeated ? 0 : from[i - added], to[i]});
  }
  copyStrided(graph::elementSize(input.type()), std::move(loops), input.data, output.data,
              context.threadPool);
  return {};
}

}  // namespace

const OperationDefinition kBroadcastToOperation = {OperationType::kBroadcastTo, validateMove,
                                                   prepare, execute};

}  // namespace hearth::ops
