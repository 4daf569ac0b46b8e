// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, POW and others of the extension: their arguments, parsed.
#pragma once

#include "base/result.h"
#include "ops/activation.h"
#include "ops/operation.h"

namespace hearth::ops {

struct BinaryParameters {
  FusedActivation activation = FusedActivation::kNone;  // only arithmetic has one
  Dimensions outputDimensions;                          // broadcast of both inputs
};

// Reads and checks every argument; shapes of inputs must be known. Errors as parseConv2d().
Result<BinaryParameters> parseBinary(const OperationContext& context);

}  // namespace hearth::ops
