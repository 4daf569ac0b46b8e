// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast.h"

#include <algorithm>

namespace hearth::ops {

Result<Dimensions> broadcastInputs(const OperationContext& context, size_t a, size_t b) {
  return broadcastShapes(context, context.inputs[a].dimensions, context.inputs[b].dimensions);
}

Result<Dimensions> broadcastShapes(const OperationContext& context, const Dimensions& left,
                                   const Dimensions& right) {
  const size_t rank = std::max(left.size(), right.size());
  Dimensions result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t l = i + left.size() < rank ? 1 : left[i + left.size() - rank];
    const uint32_t r = i + right.size() < rank ? 1 : right[i + right.size() - rank];
    if (l != r && l != 1 && r != 1)
      return fail(ErrorCode::kBadData, "The shapes {} and {} of {} do not fit each other.",
                  graph::describeDimensions(left), graph::describeDimensions(right),
                  context.describe());
    result[i] = l == 1 ? r : l;
  }
  return result;
}

}  // namespace hearth::ops
