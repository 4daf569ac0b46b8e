// SPDX-License-Identifier: Apache-2.0
// For tests: random geometries of transposed convolutions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "drivers/cpu/testing/random_convolution.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// Computes the size of the output from that of the input; the rests are below the strides.
inline void findOutput(ops::TransposeConv2dParameters* g, uint32_t restHeight, uint32_t restWidth) {
  const auto size = [](uint32_t input, int32_t stride, int32_t filter, int32_t padding,
                       uint32_t rest) {
    return (static_cast<int64_t>(input) - 1) * stride + filter - padding + rest;
  };
  const ops::Window2d& w = g->window;
  const int64_t height = size(g->input.height, w.strideHeight, w.filterHeight,
                              w.padding.top + w.padding.bottom, restHeight);
  const int64_t width = size(g->input.width, w.strideWidth, w.filterWidth,
                             w.padding.left + w.padding.right, restWidth);
  g->output.batches = g->input.batches;
  g->output.height = static_cast<uint32_t>(std::max<int64_t>(0, height));
  g->output.width = static_cast<uint32_t>(std::max<int64_t>(0, width));
  g->adjustmentHeight = restHeight;
  g->adjustmentWidth = restWidth;
}

// Calls compare(g, round) for transposed convolutions that XNNPACK can compute, too, with filters
// smaller and larger than the stride, and padding with whole windows in it. Returns their number.
template <typename Compare>
unsigned forRandomTransposed(unsigned rounds, Compare compare) {
  std::mt19937 random(1);
  unsigned tried = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const auto number = [&](uint32_t least, uint32_t most) {
      return randomNumber(&random, least, most);
    };
    const auto signedNumber = [&](uint32_t least, uint32_t most) {
      return static_cast<int32_t>(number(least, most));
    };
    ops::TransposeConv2dParameters g;
    ops::Window2d& w = g.window;
    w.filterHeight = signedNumber(1, 5);
    w.filterWidth = signedNumber(1, 5);
    w.strideHeight = signedNumber(1, 4);
    w.strideWidth = signedNumber(1, 4);
    w.padding = {signedNumber(0, 4), signedNumber(0, 4), signedNumber(0, 4), signedNumber(0, 4)};
    if (round % 2 == 0) w.padding = {};
    g.input = {number(1, 3), number(1, 12), number(1, 12), number(1, 40)};
    g.output.channels = number(1, 70);
    // As in models, there is a rest only without padding.
    const bool hasRest = round % 2 == 0;
    findOutput(&g, hasRest ? number(0, static_cast<uint32_t>(w.strideHeight) - 1) : 0,
               hasRest ? number(0, static_cast<uint32_t>(w.strideWidth) - 1) : 0);
    // XNNPACK cannot compute fewer outputs than the stride.
    if (g.output.height < static_cast<uint32_t>(w.strideHeight) ||
        g.output.width < static_cast<uint32_t>(w.strideWidth))
      continue;
    compare(g, round);
    ++tried;
  }
  return tried;
}

}  // namespace hearth::cpu
