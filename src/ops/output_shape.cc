// SPDX-License-Identifier: Apache-2.0
#include "ops/output_shape.h"

#include <limits>
#include <vector>

namespace hearth::ops {

Result<uint32_t> toDimension(const OperationContext& context, int64_t size) {
  if (size < 0 || size > std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::kBadData, "{} gives a dimension of {}, it must be in [0, 2^32 - 1].",
                context.describe(), size);
  return static_cast<uint32_t>(size);
}

Result<Dimensions> dimensionsArgument(const OperationContext& context, size_t input) {
  HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(input));
  Dimensions dimensions;
  for (const int64_t value : sizes) {
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, value));
    dimensions.push_back(size);
  }
  return dimensions;
}

Dimensions keepRankAboveZero(const OperationContext& context, Dimensions dimensions) {
  if (dimensions.empty() && context.hasOutput(0) && !context.outputs[0].operand->isRankZeroTensor &&
      !graph::isScalar(context.outputs[0].type()))
    dimensions.push_back(1);
  return dimensions;
}

}  // namespace hearth::ops
