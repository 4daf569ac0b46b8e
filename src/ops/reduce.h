// SPDX-License-Identifier: Apache-2.0
// MEAN and the REDUCE_ operations.
#pragma once

#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct ReduceParameters {
  std::vector<bool> isReduced;  // for each dimension of the input
  bool keepDimensions = false;  // reduced dimensions stay as 1
  Dimensions dimensions;        // of the output
};

// needsRuntimeValue() while the axes have no value yet. An axis may be named more than once.
Result<ReduceParameters> parseReduce(const OperationContext& context);

}  // namespace hearth::ops
