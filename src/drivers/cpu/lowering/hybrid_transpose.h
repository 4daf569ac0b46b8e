// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// Adds the node of the current transposed convolution, whose float32 activations are quantised
// while the model runs and meet 8-bit weights. False when it is not one of those, or when XNNPACK
// does not take it.
Result<bool> addHybridTranspose(PlanBuilder* builder,
                                const ops::TransposeConv2dParameters& parameters);

}  // namespace hearth::cpu
