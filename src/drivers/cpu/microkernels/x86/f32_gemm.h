// SPDX-License-Identifier: Apache-2.0
// Matrix products of float32 on AVX2 with FMA and on AVX-512, over the panels that XNNPACK packs
// for these. Compilers keep one sum of XNNPACK's AVX2 kernel in memory, which doubles its time; its
// AVX-512 kernel has half as many rows. And XNNPACK's convolutions fill a table of pointers before
// they first run, which takes as long as many runs.
#pragma once

#include <cstddef>

namespace hearth::cpu {

// The most rows of one call of the inner kernel, and the columns of a panel.
struct F32Tile {
  size_t rows = 6;
  size_t columns = 16;
};

// The tile of this CPU. Thread-safe.
const F32Tile& f32Tile();

// Whether this CPU has the instructions. Thread-safe.
bool cpuHasF32Gemm();

// output[row][column] = slope(clamp(bias[column] + sum over taps and channels +
// addend[row][column])), where slope() multiplies negative numbers by slopes[column].
struct F32Gemm {
  // Each panel has a bias for each column, then for each tap and channel a weight for each column;
  // the last panel is padded.
  const float* packed = nullptr;
  size_t taps = 1;
  size_t channels = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  const float* slopes = nullptr;  // null: all are 1
  size_t outputStride = 0;        // elements from one row to the next

  size_t panels() const { return (columns + f32Tile().columns - 1) / f32Tile().columns; }
  size_t panelSize() const { return f32Tile().columns * (1 + taps * channels); }  // in elements
  // How often memory is fetched ahead while a panel is multiplied.
  size_t fetchesPerPanel() const { return taps * channels; }
};

// Memory that is fetched into the second-level cache while rows are multiplied, evenly from the
// first panel to the last one: a cache line every `step` bytes from `first` on (null: none).
struct F32Ahead {
  const char* first = nullptr;
  size_t step = 0;
};

// Multiplies `rows` <= f32Tile().rows rows by panels [firstPanel, lastPanel). The channels of a tap
// of a row are at inputs[tap * rows + row]; `output` is where the first row begins. Sums are in the
// order of taps and channels, each step fused, as XNNPACK's. `addend` is null, or where the first
// row of what is added to them begins; its rows are as far apart as those of the output, and it may
// be the output.
void multiplyF32(const F32Gemm& product, const float* const* inputs, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output, const float* addend = nullptr,
                 const F32Ahead& ahead = {});

// Rows of inputs that lie evenly apart, as those of neighbouring outputs of a convolution do.
struct F32EvenRows {
  const float* const* taps = nullptr;  // where the channels of each tap of the first row are
  size_t step = 0;                     // elements from one row to the next
  size_t count = 0;
};

// The same for any number of rows that lie evenly apart, over all panels. Their places need no
// table, so that sums of few steps take less time, and the last half of the panels, if the other
// half of its panel is padding, is multiplied by twice as many rows at once. `scratch` has room for
// product.taps * f32Tile().rows pointers.
void multiplyEvenF32(const F32Gemm& product, const F32EvenRows& rows, const float** scratch,
                     float* output, const float* addend = nullptr);

}  // namespace hearth::cpu
