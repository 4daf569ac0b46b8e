// SPDX-License-Identifier: Apache-2.0
// Fully connected layers on XNNPACK: float32, int8 and uint8 with constant weights, and hybrid
// ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/plan_builder.h"
#include "ops/activation.h"

namespace hearth::cpu {

struct FullyConnected {
  uint32_t input = 0, filter = 0,
           output = 0;         // operands; filter is [outputChannels, inputChannels]
  uint32_t bias = UINT32_MAX;  // operand; UINT32_MAX = none
  ops::FusedActivation activation = ops::FusedActivation::kNone;
  size_t rows = 1, inputChannels = 1, outputChannels = 1;
  uint32_t blockScales = UINT32_MAX;  // operand; UINT32_MAX = the filter has its own
};

// Adds the node; false when types or constants are not what XNNPACK takes.
Result<bool> addFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
