// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED with float32 activations and weights of 4 bits that have a scale for each run of
// inputs: packed for Qb4Gemm, or read where they lie.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// The layer has block scales. Adds the nodes; false for types other than those above.
Result<bool> addBlockFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
