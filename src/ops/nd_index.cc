// SPDX-License-Identifier: Apache-2.0
#include "ops/nd_index.h"

namespace hearth::ops {

Result<std::vector<uint64_t>> readSliceNumbers(const OperationContext& context, size_t indices,
                                               const Dimensions& data) {
  const Dimensions& shape = context.inputs[indices].dimensions;
  const size_t depth = shape.back();
  uint64_t count = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(indices));
  std::vector<uint64_t> slices(count, 0);
  for (uint64_t s = 0; s < count; ++s) {
    for (size_t i = 0; i < depth; ++i) {
      const int64_t index = values[s * depth + i];
      if (index < 0 || index >= int64_t{data[i]})
        return fail(ErrorCode::kBadData, "Index {} of {} is {}, dimension {} has {} elements.",
                    s * depth + i, context.describe(), index, i, data[i]);
      slices[s] = slices[s] * data[i] + static_cast<uint64_t>(index);
    }
  }
  return slices;
}

}  // namespace hearth::ops
