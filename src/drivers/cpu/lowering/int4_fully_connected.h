// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED with float32 activations and 4-bit weights that have a scale for each block of
// inputs, or for all inputs of a channel. The weights are packed for Qb4Gemm, or read in place.
#pragma once

#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes for a layer with block scales; false for other types.
Result<bool> addBlockFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

// The same for 4-bit weights that have a scale for each channel or one in all, as hybridWeights()
// describes them; false where no product takes them.
Result<bool> addChannelInt4FullyConnected(PlanBuilder* builder, const FullyConnected& layer,
                                          const graph::Operand& filter);

}  // namespace hearth::cpu
