// SPDX-License-Identifier: Apache-2.0
// Activations of hybrid layers: float32 rows that are quantised to 8-bit numbers.
#pragma once

#include <cstddef>

#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/fully_connected_layer.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/activation.h"

namespace hearth::cpu {

// The values of the quantised rows of an operand. The first call adds the node; all layers that
// read the operand in rows of `channels` elements share it.
QuantizedRows quantizeRows(PlanBuilder* builder, uint32_t operand, size_t rows, size_t channels);

// A part of a hybrid fully connected layer, which one kernel computes.
struct HybridPart : LayerPacking {
  FullyConnected layer;
  ChannelRange channels;
  const float* bias = nullptr;  // of the first channel in `channels`
  ops::ActivationRange floats{};
  QuantizedRows source;
  ValueId destination = 0;
};

}  // namespace hearth::cpu
