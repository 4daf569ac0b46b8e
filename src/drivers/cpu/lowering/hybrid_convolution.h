// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 activations with weights of 8 or 4 bits. The activations are quantised
// while the layer runs, each image by itself.
#pragma once

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes; false for other types and for depthwise convolutions.
Result<bool> addHybridConvolution(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
