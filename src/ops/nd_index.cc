// SPDX-License-Identifier: Apache-2.0
#include "ops/nd_index.h"

namespace hearth::ops {

namespace {

template <typename Index>
Result<std::vector<uint64_t>> numberSlices(const OperationContext& context, size_t indices,
                                           const Dimensions& data, const Index* values) {
  const Dimensions& shape = context.inputs[indices].dimensions;
  const size_t depth = shape.back();
  uint64_t count = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  std::vector<uint64_t> slices;
  slices.reserve(count);
  for (uint64_t s = 0; s < count; ++s) {
    uint64_t slice = 0;
    for (size_t i = 0; i < depth; ++i) {
      const Index index = values[s * depth + i];
      if (index < 0 || index >= int64_t{data[i]})
        return fail(ErrorCode::kBadData, "Index {} of {} is {}, dimension {} has {} elements.",
                    s * depth + i, context.describe(), index, i, data[i]);
      slice = slice * data[i] + static_cast<uint64_t>(index);
    }
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace

Result<std::vector<uint64_t>> readSliceNumbers(const OperationContext& context, size_t indices,
                                               const Dimensions& data) {
  const Tensor& tensor = context.inputs[indices];
  return tensor.type() == OperandType::kTensorInt64
             ? numberSlices(context, indices, data, tensor.as<int64_t>())
             : numberSlices(context, indices, data, tensor.as<int32_t>());
}

}  // namespace hearth::ops
