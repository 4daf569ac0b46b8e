// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED with float32 activations and 4-bit weights that have a scale for each block of
// inputs. The weights are packed for Qb4Gemm, or read in place.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes for a layer with block scales; false for other types.
Result<bool> addBlockFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
