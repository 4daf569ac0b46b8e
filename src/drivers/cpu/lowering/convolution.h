// SPDX-License-Identifier: Apache-2.0
// Convolutions on XNNPACK: plain, grouped and depthwise, float32, int8 and uint8.
#pragma once

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes; false for types or constants that no kernel here takes.
Result<bool> addConvolution(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
