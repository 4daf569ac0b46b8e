// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/activation.h"

namespace hearth::cpu {

// One fully connected layer.
struct FullyConnected {
  uint32_t input = 0, filter = 0,
           output = 0;         // operands; filter is [outputChannels, inputChannels]
  uint32_t bias = UINT32_MAX;  // operand; UINT32_MAX = none
  ops::FusedActivation activation = ops::FusedActivation::kNone;
  size_t rows = 1, inputChannels = 1, outputChannels = 1;
  uint32_t blockScales = UINT32_MAX;  // operand; UINT32_MAX = the filter has its own
};

}  // namespace hearth::cpu
