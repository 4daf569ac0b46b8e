// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of float32 along a line of outputs. With windows of 3 x 3 and 5 x 5
// weights stay in registers from output to output.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// Part of a line of outputs whose windows lie within the columns of the image. Each channel of the
// input makes one of the output.
struct F32DwconvLine {
  size_t kernel = 3;    // rows and columns of the window: 3 or 5
  size_t stride = 1;    // 1 or 2
  size_t channels = 0;  // to compute
  // Numbers from one column of the input, and from one output, to the next that counts: as many as
  // the image has channels, or a multiple for each of the lines of which a dilated one is made.
  size_t step = 0;
  size_t weightStep = 0;           // numbers from the weights of one place to those of the next
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

// Neighbouring outputs of a line, by pointers to their inputs: for windows of any size and place.
struct F32DwconvWindows {
  size_t taps = 0, channels = 0;
  const float* const* weights = nullptr;  // by tap: [channels]
  // By tap and output: [channels], for kF32DwconvWindows outputs; those beyond `outputs` are not
  // read.
  const float* const* inputs = nullptr;
  size_t outputs = 0;           // 1 to kF32DwconvWindows
  const float* bias = nullptr;  // [channels]
  float lowest = 0, highest = 0;
  float* output = nullptr;  // [outputs][channels]
};

// The most outputs.
inline constexpr size_t kF32DwconvWindows = 8;

// Requires hasF32DwconvLine(windows.channels). Sums go tap by tap, with fused steps.
void multiplyF32DwconvWindows(const F32DwconvWindows& windows);

}  // namespace hearth::cpu
