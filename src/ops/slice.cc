// SPDX-License-Identifier: Apache-2.0
#include "ops/slice.h"

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 0, kMaximumRank));
  for (const size_t i : {1, 2}) {
    HEARTH_TRY(signature.inputTensor(i, kIndexTensors, 1, 1));
  }
  return signature.outputLike(0, 0);
}

}  // namespace

void copySlice(const OperationContext& context, const SliceParameters& parameters) {
  const Tensor& input = context.inputs[0];
  copySlice(graph::elementSize(input.type()), input.dimensions, parameters.ranges, input.data,
            context.outputs[0].data, context.threadPool);
}

Result<SliceParameters> parseSlice(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> begins, context.intVector(1));
  HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(2));
  if (begins.size() != input.size() || sizes.size() != input.size())
    return fail(ErrorCode::kBadData, "{} has {} begins and {} sizes for an input of rank {}.",
                context.describe(), begins.size(), sizes.size(), input.size());
  SliceParameters parameters;
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t limit = input[i];
    if (begins[i] < 0 || begins[i] > limit)
      return fail(ErrorCode::kBadData, "{} begins at {} in dimension {}, which has {} elements.",
                  context.describe(), begins[i], i, limit);
    const int64_t size = sizes[i] == -1 ? limit - begins[i] : sizes[i];
    if (size < 0 || size > limit - begins[i])
      return fail(ErrorCode::kBadData, "{} takes {} elements from {} on of the {} in dimension {}.",
                  context.describe(), size, begins[i], limit, i);
    parameters.ranges.push_back({begins[i], 1, size});
    parameters.dimensions.push_back(static_cast<uint32_t>(size));
  }
  return parameters;
}

const OperationDefinition kSliceOperation = {
    OperationType::kSlice, validate, prepareParsedShape<parseSlice>, executeSlice<parseSlice>};

}  // namespace hearth::ops
