// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/activation.h"

namespace hearth::cpu {

// One pooling with everything that XNNPACK's creation and reshape calls need.
struct Pooling {
  uint32_t input = 0, output = 0;  // operands, NHWC
  bool isMaximum = false;
  ops::FusedActivation activation = ops::FusedActivation::kNone;
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
  uint32_t filterHeight = 1, filterWidth = 1;
  uint32_t strideHeight = 1, strideWidth = 1;
  size_t batch = 1, inputHeight = 1, inputWidth = 1, channels = 1;
  size_t outputHeight = 1, outputWidth = 1;
};

}  // namespace hearth::cpu
