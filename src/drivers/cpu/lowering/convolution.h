// SPDX-License-Identifier: Apache-2.0
// Convolutions on XNNPACK: plain, grouped and depthwise, float32, int8 and uint8.
#pragma once

#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node; false when types or constants are not what XNNPACK takes.
Result<bool> addConvolution(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
