// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of int8 on AVX-512 VNNI. A dot product is over four rows of one column of
// a window; XNNPACK multiplies in 32 bits, one tap after another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Neighbouring outputs that are computed together.
inline constexpr size_t kDepthwiseTile = 4;
// The greatest stride of such outputs, and the most rows and columns of a window.
inline constexpr size_t kMostDepthwiseStride = 2;
inline constexpr size_t kMostDepthwiseKernel = 5;

// Whether this CPU has the instructions and there is code for a window of this size. Thread-safe.
bool hasDepthwiseProduct(size_t kernelHeight, size_t kernelWidth);

// One multiplication per channel and tap, with a factor for each channel.
struct Qs8Dwconv {
  const uint8_t* packed = nullptr;
  size_t kernelHeight = 0, kernelWidth = 0;
  size_t channels = 0;
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
};

size_t depthwisePackedBytes(const Qs8Dwconv& product);

// Packs weights [kernelHeight][kernelWidth][channels], a bias for each channel (may be null) and
// the channels' factors (input scale * weight scale / output scale), for inputs with the zero point
// `inputZero`. `packed` has depthwisePackedBytes() bytes.
void packDepthwise(const Qs8Dwconv& product, const int8_t* weights, const int32_t* bias,
                   const float* factors, int32_t inputZero, uint8_t* packed);

// Computes all channels of one output. columns[x * kernelHeight + y] points to the channels of a
// tap. Rounds to nearest even, then clamps.
void multiplyDepthwise(const Qs8Dwconv& product, const int8_t* const* columns, int8_t* output);

// The same for kDepthwiseTile outputs whose windows begin `stride` (1 or 2) columns apart;
// `columns` are those under all of their windows. The outputs are written `step` pixels apart.
void multiplyDepthwiseTile(const Qs8Dwconv& product, size_t stride, const int8_t* const* columns,
                           int8_t* output, size_t step);

// Whether there is code for windows of so many places, whatever their shape. Thread-safe.
bool hasDepthwisePlaces(size_t places);

// Computes all channels of `count` neighbouring outputs. Weights are packed as those of a window of
// kernelHeight places in one column; inputs[place * step + output] points to the channels at a
// place.
void multiplyDepthwisePlaces(const Qs8Dwconv& product, const int8_t* const* inputs, size_t step,
                             size_t count, int8_t* output);

// Number of columns under the windows of kDepthwiseTile outputs.
inline size_t depthwiseTileColumns(size_t kernelWidth, size_t stride) {
  return (kDepthwiseTile - 1) * stride + kernelWidth;
}

}  // namespace hearth::cpu
