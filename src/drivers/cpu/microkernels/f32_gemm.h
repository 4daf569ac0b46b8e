// SPDX-License-Identifier: Apache-2.0
// Matrix products of float32 on AVX2 with FMA and on AVX-512, over the panels that XNNPACK packs
// for those. Its own kernel for AVX2, as compilers make it, keeps one of its sums in memory and
// takes twice the time; the one for AVX-512 has half as many rows. And its convolutions write a
// table of pointers for each window before they first run, which takes as long as many of them.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// Rows that one call of the inner kernel computes at most, and columns that a panel has.
struct F32Tile {
  size_t rows = 6;
  size_t columns = 16;
};

// Those of this CPU. Thread-safe.
const F32Tile& f32Tile();

// Whether this CPU has the instructions. Thread-safe.
bool cpuHasF32Gemm();

// output[row][column] = clamp(bias[column] + sum over taps and channels).
struct F32Gemm {
  // For each panel a bias of each column, then for each tap and channel a weight of each column;
  // the last panel is padded.
  const float* packed = nullptr;
  size_t taps = 1;
  size_t channels = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // from one row to the next, in elements

  size_t panels() const { return (columns + f32Tile().columns - 1) / f32Tile().columns; }
  size_t panelSize() const { return f32Tile().columns * (1 + taps * channels); }  // in elements
};

// `rows` <= f32Tile().rows rows of panels [firstPanel, lastPanel). inputs[tap * rows + row] has
// the channels of a row; output is where the first row begins. Sums are in the order of taps and
// channels, each step fused, as XNNPACK's.
void multiplyF32(const F32Gemm& product, const float* const* inputs, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output);

}  // namespace hearth::cpu
