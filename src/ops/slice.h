// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct SliceParameters {
  std::vector<uint32_t> begin;  // first index taken in each dimension
  Dimensions dimensions;        // of the output; begin + dimensions never exceeds the input
};

// needsRuntimeValue() while begin or size have no value yet. A size of -1 reaches to the end.
Result<SliceParameters> parseSlice(const OperationContext& context);

}  // namespace hearth::ops
