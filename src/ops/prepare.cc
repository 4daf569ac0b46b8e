// SPDX-License-Identifier: Apache-2.0
#include "ops/prepare.h"

#include <utility>

#include "ops/broadcast.h"
#include "ops/validation.h"

namespace hearth::ops {

Status prepareLikeOnlyInput(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

Status prepareBroadcastOfTwo(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_ASSIGN(Dimensions dimensions, broadcastInputs(context, 0, 1));
  return context.setOutputDimensions(0, std::move(dimensions));
}

}  // namespace hearth::ops
