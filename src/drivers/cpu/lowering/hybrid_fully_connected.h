// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED with float32 activations and weights of 8 or 4 bits: the activations are
// quantised row by row while the model runs, so that the products are those of integers.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes; false when the layer is not hybrid, or when XNNPACK does not take it.
Result<bool> addHybridFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
