// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE and EXPAND_DIMS: the same elements with other dimensions.
#pragma once

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct ReshapeParameters {
  Dimensions dimensions;  // of output 0; as many elements as input 0
};

// For any of the three operations. needsRuntimeValue() while the shape input has no value yet.
Result<ReshapeParameters> parseReshape(const OperationContext& context);

}  // namespace hearth::ops
