// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and LOG_SOFTMAX: their arguments, parsed.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct SoftmaxParameters {
  float beta = 1.0f;  // finite and positive
  size_t axis = 0;    // below the input's rank
};

// Reads and checks every argument; the input's shape must be known. The axis defaults to the last
// one. Errors as parseConv2d().
Result<SoftmaxParameters> parseSoftmax(const OperationContext& context);

}  // namespace hearth::ops
