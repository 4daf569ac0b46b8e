// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  return resolveAxis(context, axis, context.inputs[0].rank());
}

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(0, kMovableTensors));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(2, kIndexTensors));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  return signature.outputQuantizationLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  Dimensions dimensions = context.inputs[0].dimensions;
  const Dimensions& indices = context.inputs[2].dimensions;
  const auto place = dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(axis));
  dimensions.insert(place, indices.begin(), indices.end());
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(2));
  const Tensor& input = context.inputs[0];
  const int64_t limit = input.dimensions[axis];
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= limit)
      return fail(ErrorCode::kBadData, "Index {} of {} is {}, dimension {} has {} elements.", i,
                  context.describe(), indices[i], axis, limit);
  uint64_t outer = 1;
  uint64_t row = graph::elementSize(input.type());
  for (size_t i = 0; i < axis; ++i) outer *= input.dimensions[i];
  for (size_t i = axis + 1; i < input.rank(); ++i) row *= input.dimensions[i];
  const uint8_t* source = input.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  const uint64_t slab = static_cast<uint64_t>(limit) * row;
  const uint64_t count = indices.size();
  threads::forRanges(
      context.threadPool, outer * count, threads::grainOf(row), [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i)
          std::memcpy(target + i * row,
                      source + i / count * slab + static_cast<uint64_t>(indices[i % count]) * row,
                      row);
      });
  return {};
}

}  // namespace

const OperationDefinition kGatherOperation = {OperationType::kGather, validate, prepare, execute};

}  // namespace hearth::ops
