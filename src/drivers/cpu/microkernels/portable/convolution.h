// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/activation.h"

namespace hearth::cpu {

// One NHWC convolution with everything that XNNPACK's creation and reshape calls need.
struct Convolution {
  uint32_t input = 0, filter = 0, output = 0;  // operands
  uint32_t bias = UINT32_MAX;                  // operand; UINT32_MAX = none
  ops::FusedActivation activation = ops::FusedActivation::kNone;
  bool isDepthwise = false;
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
  uint32_t kernelHeight = 1, kernelWidth = 1;
  uint32_t strideHeight = 1, strideWidth = 1;
  uint32_t dilationHeight = 1, dilationWidth = 1;
  uint32_t groups = 1;
  size_t groupInputChannels = 1, groupOutputChannels = 1;
  size_t batch = 1, inputHeight = 1, inputWidth = 1;
  size_t outputHeight = 1, outputWidth = 1;

  // Whether each output pixel depends on the input pixel of the same place alone.
  bool isOverPixels() const {
    return kernelHeight == 1 && kernelWidth == 1 && strideHeight == 1 && strideWidth == 1 &&
           top + bottom + left + right == 0;
  }
};

}  // namespace hearth::cpu
