// SPDX-License-Identifier: Apache-2.0
// SEGMENT_SUM of the extension: sums of the rows (slices along dimension 0) that have the same
// segment number. Inputs: data, segment numbers (one for each row, in ascending order). The output
// has a row for each number up to the last; segments without rows give zeros.
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorFloat32 | OperandType::kTensorInt32, 1,
                                   kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, 1));
  return signature.outputTypeLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_ASSIGN(const std::vector<int64_t> segments, context.intVector(1));
  Dimensions dimensions = context.inputs[0].dimensions;
  if (segments.size() != dimensions[0])
    return fail(ErrorCode::kBadData, "{} has {} segment numbers for {} rows.", context.describe(),
                segments.size(), dimensions[0]);
  int64_t previous = 0;
  for (const int64_t segment : segments) {
    if (segment < previous || segment >= UINT32_MAX)
      return fail(ErrorCode::kBadData, "The segment number {} of {} follows {}.", segment,
                  context.describe(), previous);
    previous = segment;
  }
  HEARTH_ASSIGN(dimensions[0], toDimension(context, segments.empty() ? 0 : previous + 1));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> segments, context.intVector(1));
  const Tensor& input = context.inputs[0];
  size_t row = 1;
  for (size_t i = 1; i < input.rank(); ++i) row *= input.dimensions[i];
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    // Sums of integers wrap.
    using Sum = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    T* target = context.outputs[0].as<T>();
    std::fill_n(target, context.outputs[0].elementCount(), T{0});
    const T* source = input.as<T>();
    for (const int64_t segment : segments) {
      T* sums = target + static_cast<size_t>(segment) * row;
      for (size_t i = 0; i < row; ++i) {
        const Sum sum = static_cast<Sum>(sums[i]) + static_cast<Sum>(*source++);
        sums[i] = static_cast<T>(sum);
      }
    }
    return {};
  });
}

}  // namespace

const OperationDefinition kSegmentSumOperation = {OperationType::kSegmentSum, validate, prepare,
                                                  execute};

}  // namespace hearth::ops
