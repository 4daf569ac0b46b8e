// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Result<Dimensions> parseMultiples(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(Dimensions multiples, dimensionsArgument(context, 1));
  if (multiples.size() != input.size())
    return fail(ErrorCode::kBadData, "{} has {} multiples for an input of rank {}.",
                context.describe(), multiples.size(), input.size());
  return multiples;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Dimensions multiples, parseMultiples(context));
  Dimensions dimensions = context.inputs[0].dimensions;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const uint64_t size = uint64_t{dimensions[i]} * multiples[i];
    if (size > UINT32_MAX)
      return fail(ErrorCode::kBadData, "{} repeats dimension {} of size {} {} times.",
                  context.describe(), i, dimensions[i], multiples[i]);
    dimensions[i] = static_cast<uint32_t>(size);
  }
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Dimensions multiples, parseMultiples(context));
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const std::vector<int64_t> from = rowMajorStrides(input.dimensions);
  const std::vector<int64_t> to = rowMajorStrides(output.dimensions);
  std::vector<CopyDimension> loops;
  for (size_t i = 0; i < to.size(); ++i) {
    loops.push_back({multiples[i], 0, to[i] * input.dimensions[i]});
    loops.push_back({input.dimensions[i], from[i], to[i]});
  }
  copyStrided(graph::elementSize(input.type()), std::move(loops), input.data, output.data,
              context.threadPool);
  return {};
}

}  // namespace

const OperationDefinition kTileOperation = {OperationType::kTile, validateMove, prepare, execute};

}  // namespace hearth::ops
