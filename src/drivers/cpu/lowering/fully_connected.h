// SPDX-License-Identifier: Apache-2.0
// Fully connected layers with constant weights: float32, int8, uint8 and hybrid ones.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes; false for types or constants that no kernel here takes.
Result<bool> addFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
