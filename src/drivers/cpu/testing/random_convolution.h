// SPDX-License-Identifier: Apache-2.0
// For tests: random geometries of convolutions.
#pragma once

#include <initializer_list>
#include <random>

#include "drivers/cpu/microkernels/portable/convolution.h"

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

// Calls compare(g, seed) for 200 depthwise convolutions with windows of 3x3 and 5x5; `random` is
// that of the convolutions.
template <typename Compare>
void forRandomDepthwise(std::mt19937* random, Compare compare) {
  for (unsigned round = 0; round < 200; ++round) {
    Convolution g = randomConvolution(random, 1, 5, 3);
    g.kernelHeight = g.kernelWidth = round % 3 == 0 ? 5 : 3;
    compare(g, round);
  }
}

// Calls compare(g, channels, seed) for padded 3x3 windows over images of several widths, with
// strides of 1 and 2.
template <typename Compare>
void forWidthsAndChannels(std::initializer_list<size_t> allChannels, Compare compare) {
  for (const size_t width : {3, 4, 5, 7, 8, 14})
    for (const size_t channels : allChannels)
      for (const uint32_t stride : {1, 2}) {
        Convolution g;
        g.inputHeight = 5;
        g.inputWidth = width;
        g.kernelHeight = g.kernelWidth = 3;
        g.top = g.bottom = g.left = g.right = 1;
        g.strideHeight = g.strideWidth = stride;
        compare(g, channels, static_cast<unsigned>(width * 1000 + channels * 2 + stride));
      }
}

// Calls compare(g, seed) for products of so many rows and columns.
template <typename Compare>
void forRowsAndColumns(std::initializer_list<size_t> allRows,
                       std::initializer_list<size_t> allColumns, Compare compare) {
  for (const size_t rows : allRows)
    for (const size_t columns : allColumns) {
      Convolution g;
      g.batch = rows;
      g.groupInputChannels = 37;
      g.groupOutputChannels = columns;
      compare(g, static_cast<unsigned>(rows * 131 + columns));
    }
}

// A convolution whose windows have 33 * 33 * 32 elements.
inline Convolution windowsOfManyInputs() {
  Convolution g;
  g.inputHeight = g.inputWidth = 9;
  g.groupInputChannels = 32;
  g.groupOutputChannels = 19;
  g.kernelHeight = g.kernelWidth = 33;
  g.top = g.bottom = g.left = g.right = 16;
  findOutputSize(&g);
  return g;
}

}  // namespace hearth::cpu
