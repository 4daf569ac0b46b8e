// SPDX-License-Identifier: Apache-2.0
// BUCKETIZE of the extension: for each element, the number of boundaries that are less than or
// equal to it; for NaN, all of them. Inputs: data, boundaries (TENSOR_FLOAT32 of rank 1, in
// ascending order). Output: TENSOR_INT32 of the data's shape.
#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, OperandType::kTensorFloat32 | OperandType::kTensorFloat64 |
                                        OperandType::kTensorInt32 | OperandType::kTensorInt64));
  HEARTH_TRY(signature.inputTensor(1, OperandType::kTensorFloat32, 1, 1));
  return signature.outputType(0, OperandType::kTensorInt32);
}

Status parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  return requireRank(context, 1, 1, 1);
}

Status execute(OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const std::span boundaries(context.inputs[1].as<float>(), context.inputs[1].elementCount());
  for (size_t i = 0; i < boundaries.size(); ++i)
    if (std::isnan(boundaries[i]) || (i > 0 && boundaries[i] < boundaries[i - 1]))
      return fail(ErrorCode::kBadData, "Boundary {} of {} is {}, below the one before it or NaN.",
                  i, context.describe(), boundaries[i]);
  int32_t* output = context.outputs[0].as<int32_t>();
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if constexpr (!std::is_same_v<T, Half>)
      threads::forRanges(context.threadPool, data.elementCount(), threads::grainOf(16),
                         [&](uint64_t begin, uint64_t end) {
                           for (uint64_t i = begin; i < end; ++i) {
                             const auto value = static_cast<double>(data.as<T>()[i]);
                             const auto above = std::ranges::upper_bound(
                                 boundaries, value, {},
                                 [](float boundary) { return static_cast<double>(boundary); });
                             output[i] = static_cast<int32_t>(
                                 std::isnan(value)
                                     ? boundaries.size()
                                     : static_cast<size_t>(above - boundaries.begin()));
                           }
                         });
    return {};
  });
}

}  // namespace

const OperationDefinition kBucketizeOperation = {OperationType::kBucketize, validate,
                                                 prepareLikeInput<parse>, execute};

}  // namespace hearth::ops
