// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 with few output channels. A product over panels of columns would use as
// many lanes of a vector as there are channels; here neighbouring outputs of a line are the lanes.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// A place of the window.
struct F32NarrowTap {
  // The first channel of the input under each output, one behind the other.
  const float* inputs = nullptr;
  // Of the first output channel: [channels].
  const float* weights = nullptr;
};

// Part of a line of outputs.
struct F32NarrowLine {
  size_t taps = 0, channels = 0;
  const F32NarrowTap* window = nullptr;  // [taps]
  size_t channelStep = 0;                // from one channel of a tap's inputs to the next
  size_t columns = 0;                    // output channels: 1 to half of f32NarrowLanes()
  size_t columnStep = 0;                 // from the weights of one output channel to the next
  const float* bias = nullptr;           // [columns]
  float lowest = 0, highest = 0;
  size_t outputs = 0;
  float* results = nullptr;  // [columns][resultStep]
  size_t resultStep = 0;
};

// Inputs and results have room for so many outputs, or a multiple.
inline constexpr size_t kF32NarrowOutputs = 16;

// Outputs of a vector; 0: this CPU lacks the instructions. Thread-safe.
size_t f32NarrowLanes();

// results[column][output] = clamp(bias[column] + sum over taps and channels), in this order, with
// fused steps. Reads the inputs of, and writes, outputs up to the next multiple of
// kF32NarrowOutputs.
void multiplyF32NarrowLine(const F32NarrowLine& line);

// Copies the channels of `count` pixels, which are `step` numbers apart, to one plane each:
// planes[channel][pixel]. Planes are `planeSize` numbers apart.
void splitF32Channels(const float* pixels, size_t step, size_t count, size_t channels,
                      float* planes, size_t planeSize);

}  // namespace hearth::cpu
