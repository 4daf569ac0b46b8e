// SPDX-License-Identifier: Apache-2.0
// uint8 convolutions on our product with AVX-512 VNNI: XNNPACK's kernels multiply in 16 bits.
#pragma once

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node for a convolution whose types and scales XNNPACK would take; false when it is
// depthwise, grouped, not uint8, too deep for 32-bit sums, or the CPU lacks the instructions.
Result<bool> addQu8Convolution(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
