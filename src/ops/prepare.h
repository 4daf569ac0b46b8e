// SPDX-License-Identifier: Apache-2.0
// What several operations have as their prepare.
#pragma once

#include "ops/operation.h"

namespace hearth::ops {

// Of one input and one output of its shape.
Status prepareLikeOnlyInput(OperationContext& context);

// Of two inputs and one output of the shape that broadcastInputs() gives them.
Status prepareBroadcastOfTwo(OperationContext& context);

}  // namespace hearth::ops
