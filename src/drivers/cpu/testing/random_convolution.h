// SPDX-License-Identifier: Apache-2.0
// For tests: random geometries of convolutions.
#pragma once

#include <random>

#include "drivers/cpu/microkernels/convolution.h"

namespace hearth::cpu {

inline uint32_t randomNumber(std::mt19937* random, uint32_t least, uint32_t most) {
  return least + static_cast<uint32_t>((*random)() % (most - least + 1));
}

// Fills in the size of the output.
inline void findOutputSize(Convolution* g) {
  const auto size = [](size_t input, uint32_t padding, uint32_t kernel, uint32_t dilation,
                       uint32_t stride) {
    return (input + padding - (kernel - 1) * dilation - 1) / stride + 1;
  };
  g->outputHeight =
      size(g->inputHeight, g->top + g->bottom, g->kernelHeight, g->dilationHeight, g->strideHeight);
  g->outputWidth =
      size(g->inputWidth, g->left + g->right, g->kernelWidth, g->dilationWidth, g->strideWidth);
}

// A convolution of one group, with windows up to `mostKernel`, strides up to `mostStride` and pads
// up to mostKernel - 1.
inline Convolution randomConvolution(std::mt19937* random, size_t mostChannels, uint32_t mostKernel,
                                     uint32_t mostStride) {
  const auto number = [&](uint32_t least, uint32_t most) {
    return randomNumber(random, least, most);
  };
  Convolution g;
  g.batch = number(1, 3);
  g.inputHeight = number(2 * mostKernel, 20);
  g.inputWidth = number(2 * mostKernel, 20);
  g.groupInputChannels = number(1, static_cast<uint32_t>(mostChannels));
  g.groupOutputChannels = number(1, 70);
  g.kernelHeight = number(1, mostKernel);
  g.kernelWidth = number(1, mostKernel);
  g.strideHeight = number(1, mostStride);
  g.strideWidth = number(1, mostStride);
  g.dilationHeight = number(1, 2);
  g.dilationWidth = number(1, 2);
  g.top = number(0, mostKernel - 1);
  g.bottom = number(0, mostKernel - 1);
  g.left = number(0, mostKernel - 1);
  g.right = number(0, mostKernel - 1);
  findOutputSize(&g);
  return g;
}

}  // namespace hearth::cpu
