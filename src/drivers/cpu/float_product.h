// SPDX-License-Identifier: Apache-2.0
// Matrix products of float32 on AVX2 and FMA, over the panels that XNNPACK packs for that: its own
// kernel for them, as compilers make it, keeps one of its sums in memory and takes twice the time.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// Rows that one call of the inner kernel computes, and columns that a panel has.
inline constexpr size_t kFloatRows = 6;
inline constexpr size_t kFloatColumns = 16;

// Whether this CPU has the instructions, and XNNPACK packs float32 weights on it as described
// below. Found out once for the process; thread-safe.
bool hasFloatProduct();

// output[row][column] = clamp(bias[column] + sum over taps and channels).
struct FloatProduct {
  // For each 16 columns 16 biases, then for each tap and channel 16 weights; the last panel is
  // padded.
  const float* packed = nullptr;
  size_t taps = 1;
  size_t channels = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // from one row to the next, in elements

  size_t panels() const { return (columns + kFloatColumns - 1) / kFloatColumns; }
  size_t panelSize() const { return kFloatColumns * (1 + taps * channels); }  // in elements
};

// `rows` rows of panels [firstPanel, lastPanel). inputs[tap * rows + row] has the channels of a
// row; output is where the first row begins. Sums are in the order of taps and channels, each step
// fused, as XNNPACK's.
void multiplyFloats(const FloatProduct& product, const float* const* inputs, size_t rows,
                    size_t firstPanel, size_t lastPanel, float* output);

}  // namespace hearth::cpu
