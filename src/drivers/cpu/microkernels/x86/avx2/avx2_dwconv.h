// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of int8 and uint8 on AVX2. Inputs and weights are widened to 16 bits, and
// the products of two rows are added by the instruction that multiplies; XNNPACK multiplies in 32
// bits, one tap after another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Whether this CPU has the instructions and there is code for a window of this size. Thread-safe.
bool hasAvx2Dwconv(size_t kernelHeight, size_t kernelWidth);

// One multiplication per channel and tap, with a factor for each channel.
struct Avx2Dwconv {
  const uint8_t* packed = nullptr;
  size_t kernelHeight = 0, kernelWidth = 0;
  size_t channels = 0;
  bool isSigned = true;    // int8; else uint8
  int32_t weightZero = 0;  // of uint8 weights
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
};

size_t avx2DwconvBytes(const Avx2Dwconv& product);

// Packs weights [kernelHeight][kernelWidth][channels], a bias for each channel (may be null) and
// the channels' factors (input scale * weight scale / output scale), for inputs with the zero point
// `inputZero`. `packed` has avx2DwconvBytes() bytes.
void packAvx2Dwconv(const Avx2Dwconv& product, const uint8_t* weights, const int32_t* bias,
                    const float* factors, int32_t inputZero, uint8_t* packed);

// Computes all channels of one output. columns[x * kernelHeight + y] points to the channels of a
// tap. Rounds to nearest even, then clamps.
void multiplyAvx2Dwconv(const Avx2Dwconv& product, const uint8_t* const* columns, uint8_t* output);

// The same for kDepthwiseTile outputs whose windows begin `stride` (1 or 2) columns apart;
// `columns` are those under all of their windows. The outputs are written `step` pixels apart.
void multiplyAvx2DwconvTile(const Avx2Dwconv& product, size_t stride, const uint8_t* const* columns,
                            uint8_t* output, size_t step);

}  // namespace hearth::cpu
