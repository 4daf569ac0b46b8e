// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes for a float32 convolution with one group, or for a fully connected layer as a
// convolution of single pixels, whose weights are a float16 constant behind a conversion. They run
// on a product of ours that keeps the weights in float16. `kind` names the operation in reports.
// False for other layers, for those with small weights, which are faster in float32, and when the
// CPU lacks the instructions.
Result<bool> addF16wLayer(PlanBuilder* builder, const Convolution& geometry, const char* kind);

}  // namespace hearth::cpu
