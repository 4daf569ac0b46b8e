// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds a depthwise convolution with float32 activations, which are quantised while it runs, and
// constant 8-bit weights. Activations are rounded to their steps, and the rounded real numbers are
// multiplied by real weights, on our float32 kernel (see hasF32Depthwise()). False for other
// convolutions.
Result<bool> addHybridDepthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
