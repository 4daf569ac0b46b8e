// SPDX-License-Identifier: Apache-2.0
#include "ops/transpose.h"

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 0, kMaximumRank));
  HEARTH_TRY(signature.optionalInputType(1, kIndexTensors));
  HEARTH_TRY(signature.inputRank(1, 1, 1));
  return signature.outputLike(0, 0);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const TransposeParameters parameters, parseTranspose(context));
  const Tensor& input = context.inputs[0];
  const std::vector<int64_t> from = rowMajorStrides(input.dimensions);
  const std::vector<int64_t> to = rowMajorStrides(parameters.dimensions);
  std::vector<CopyDimension> loops;
  for (size_t i = 0; i < to.size(); ++i)
    loops.push_back({parameters.dimensions[i], from[parameters.permutation[i]], to[i]});
  copyStrided(graph::elementSize(input.type()), std::move(loops), input.data,
              context.outputs[0].data, context.threadPool);
  return {};
}

}  // namespace

Result<TransposeParameters> parseTranspose(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  const size_t rank = input.size();
  TransposeParameters parameters;
  if (!context.hasInput(1)) {
    for (size_t i = rank; i-- > 0;) parameters.permutation.push_back(i);
  } else {
    HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(1));
    if (values.size() != rank)
      return fail(ErrorCode::kBadData, "The permutation of {} has {} entries, its input rank {}.",
                  context.describe(), values.size(), rank);
    std::vector<bool> used(rank, false);
    for (const int64_t value : values) {
      HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, rank));
      if (used[axis])
        return fail(ErrorCode::kBadData, "The permutation of {} names dimension {} twice.",
                    context.describe(), axis);
      used[axis] = true;
      parameters.permutation.push_back(axis);
    }
  }
  for (const size_t axis : parameters.permutation) parameters.dimensions.push_back(input[axis]);
  return parameters;
}

const OperationDefinition kTransposeOperation = {OperationType::kTranspose, validate,
                                                 prepareParsedShape<parseTranspose>, execute};

}  // namespace hearth::ops
