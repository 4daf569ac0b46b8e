// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct SplitParameters {
  size_t axis = 0;        // in [0, rank)
  size_t count = 0;       // of outputs
  Dimensions dimensions;  // of every output
};

Result<SplitParameters> parseSplit(const OperationContext& context);

}  // namespace hearth::ops
