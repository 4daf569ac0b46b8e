// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct ConcatenationParameters {
  size_t tensorCount = 0;  // the first inputs; the axis follows them
  size_t axis = 0;         // in [0, rank)
  Dimensions dimensions;   // of the output
};

// All inputs must have a complete shape, else needsRuntimeValue().
Result<ConcatenationParameters> parseConcatenation(const OperationContext& context);

}  // namespace hearth::ops
