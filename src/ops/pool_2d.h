// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: their arguments, parsed.
#pragma once

#include "base/result.h"
#include "ops/operation.h"
#include "ops/window_parameters.h"

namespace hearth::ops {

// Padded elements do not take part: an average divides by the number of real elements. Every
// window holds at least one real element.
using Pool2dParameters = WindowParameters;

// Reads and checks every argument; shapes of inputs must be known. Errors as parseConv2d().
Result<Pool2dParameters> parsePool2d(const OperationContext& context);

}  // namespace hearth::ops
