// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// A float32 convolution with one group, or a fully connected layer as one over single pixels, whose
// weights are a float16 constant behind a conversion: on a product of ours that keeps them in
// float16. `kind` names the operation in reports. False when it is not one, or the CPU lacks the
// instructions.
Result<bool> addF16wLayer(PlanBuilder* builder, const Convolution& geometry, const char* kind);

}  // namespace hearth::cpu
