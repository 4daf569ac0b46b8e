// SPDX-License-Identifier: Apache-2.0
// Matrix products of float32 with float16 weights, which are widened as they are read. With few
// rows a layer takes as long as reading its weights, which is half of the time of float32; the
// results are the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Columns of a panel.
inline constexpr size_t kHalfColumns = 16;

// Whether this CPU has the instructions. Thread-safe.
bool hasHalfProduct();

// The most rows of a tile on this CPU. Thread-safe.
size_t halfTileRows();

// output[row][column] = clamp(bias[column] + sum over channels). The sum is in the order of
// channels, each step fused, as XNNPACK's of float32.
struct F16wGemm {
  // Panels of 16 columns: 16 biases (float32), then for each channel 16 weights (float16). The last
  // panel is padded with zeros. 32-byte aligned.
  const uint8_t* packed = nullptr;
  size_t channels = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // elements from one row to the next

  size_t panels() const { return (columns + kHalfColumns - 1) / kHalfColumns; }
  size_t panelBytes() const { return kHalfColumns * (sizeof(float) + channels * sizeof(uint16_t)); }
};

// Packs all panels of weights [columns][channels] into `packed`; `bias` may be null. Does not read
// `product.packed`.
void packHalves(const F16wGemm& product, const uint16_t* weights, const float* bias,
                uint8_t* packed);

// Makes a tile as multiplyHalves() reads it, [channels][rowCount], of `rows` [rowCount][channels].
// A single row is a tile already.
void makeHalfTile(const float* rows, size_t rowCount, size_t channels, float* tile);

// Multiplies channels [firstChannel, lastChannel) of `rowCount` <= halfTileRows() rows by panels
// [firstPanel, lastPanel). The call with the first channel begins the sums, later ones continue
// those in `output`, and the one with the last channel clamps them. `output` is where the first row
// begins.
void multiplyHalves(const F16wGemm& product, const float* tile, size_t rowCount,
                    size_t firstChannel, size_t lastChannel, size_t firstPanel, size_t lastPanel,
                    float* output);

}  // namespace hearth::cpu
