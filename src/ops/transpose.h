// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct TransposeParameters {
  std::vector<size_t> permutation;  // output dimension i is input dimension permutation[i]
  Dimensions dimensions;            // of the output
};

// needsRuntimeValue() while the permutation has no value yet. Without one the order is reversed.
Result<TransposeParameters> parseTranspose(const OperationContext& context);

}  // namespace hearth::ops
