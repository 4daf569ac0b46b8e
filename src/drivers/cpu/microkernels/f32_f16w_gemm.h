// SPDX-License-Identifier: Apache-2.0
// Matrix products of float32 with weights of float16, which are widened as they are read. A layer
// that a few rows pass takes as long as its weights take to read, which is half of what it would be
// in float32; the results are the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Columns that a panel has.
inline constexpr size_t kHalfColumns = 16;

// Whether this CPU has the instructions. Thread-safe.
bool hasHalfProduct();

// The most rows of one tile, here.
size_t halfTileRows();

// output[row][column] = clamp(bias[column] + sum over channels), each step of the sum fused and in
// the order of channels, as XNNPACK's of float32.
struct F16wGemm {
  // For each 16 columns 16 biases (float32), then for each channel 16 weights (float16); the last
  // panel is padded with zeros. 32-byte aligned.
  const uint8_t* packed = nullptr;
  size_t channels = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // from one row to the next, in elements

  size_t panels() const { return (columns + kHalfColumns - 1) / kHalfColumns; }
  size_t panelBytes() const { return kHalfColumns * (sizeof(float) + channels * sizeof(uint16_t)); }
};

// All panels of weights [columns][channels]; `bias` may be null. `product.packed` is not looked at.
void packHalves(const F16wGemm& product, const uint16_t* weights, const float* bias,
                uint8_t* packed);

// A tile of rows as multiplyHalves reads them: for each channel the numbers of all rows. `rows`
// have `channels` numbers each, one after another. Not needed for a single row, which is one
// already.
void makeHalfTile(const float* rows, size_t rowCount, size_t channels, float* tile);

// Channels [firstChannel, lastChannel) of `rowCount` <= halfTileRows() rows and panels
// [firstPanel, lastPanel). Sums begin with the first channel, go on from what is in `output` with
// others, and are clamped with the last one. `output` is where the first row begins.
void multiplyHalves(const F16wGemm& product, const float* tile, size_t rowCount,
                    size_t firstChannel, size_t lastChannel, size_t firstPanel, size_t lastPanel,
                    float* output);

}  // namespace hearth::cpu
