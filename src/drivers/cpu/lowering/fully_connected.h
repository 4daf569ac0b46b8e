// SPDX-License-Identifier: Apache-2.0
// Fully connected layers on XNNPACK: float32, int8 and uint8 with constant weights, and hybrid
// ones.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node; false when types or constants are not what XNNPACK takes.
Result<bool> addFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
