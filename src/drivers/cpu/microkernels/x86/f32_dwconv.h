// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of float32 along a line of outputs. Weights stay in registers from output
// to output.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// Part of a line of outputs whose windows lie within the columns of the image. Each channel of the
// input makes one of the output.
struct F32DwconvLine {
  size_t kernel = 3;  // rows and columns of the window: 3 or 5
  size_t stride = 1;  // 1 or 2
  size_t channels = 0;
  // Numbers from one column of the input, and from one output, to the next that counts: as many as
  // there are channels, or a multiple for each of the lines of which a dilated one is made.
  size_t step = 0;
  const float* weights = nullptr;  // [kernel][kernel][channels]
  const float* bias = nullptr;     // [channels]
  float lowest = 0, highest = 0;
  // By row of the window, the channels of the first column under the first window; the others
  // follow.
  const float* const* rows = nullptr;
  size_t outputs = 0;  // at least kF32DwconvTile
  float* output = nullptr;
};

// The least number of outputs.
inline constexpr size_t kF32DwconvTile = 4;

// Whether there are instructions for so many channels. Thread-safe.
bool hasF32DwconvLine(size_t channels);

// Sums go column by column of the window, with fused steps, as XNNPACK's.
void multiplyF32DwconvLine(const F32DwconvLine& line);

}  // namespace hearth::cpu
