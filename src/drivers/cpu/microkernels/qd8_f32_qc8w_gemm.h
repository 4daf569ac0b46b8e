// SPDX-License-Identifier: Apache-2.0
// Products of rows of 8-bit numbers that are quantised while a model runs and weights of 8 bits for
// each channel, on AVX-512 VNNI, over the panels that XNNPACK packs for that and with its very
// results. Its own kernel turns the sign of every number again for each panel, on the units that
// multiply; here rows are turned once.
#pragma once

#include <cstddef>
#include <cstdint>

struct xnn_quantization_params;

namespace hearth::cpu {

// Rows that one call of the inner kernel computes at most, and columns that a panel has.
inline constexpr size_t kQd8Rows = 12;
inline constexpr size_t kQd8Columns = 16;
// Inputs that lie together, and so many that sums stay within 32 bits.
inline constexpr size_t kQd8Group = 8;
inline constexpr size_t kMostQd8Inputs = size_t{1} << 16;

// Whether this CPU has the instructions. Thread-safe.
bool cpuHasQd8Gemm();

// output[row][column] = clamp(bias[column] + scale[column] * rowScale[row] * sum over inputs).
struct Qd8Gemm {
  // For each 16 columns the negative sums of their weights, then for each 8 inputs 16 x 8 weights,
  // then 16 scales and 16 biases; what is beyond the inputs and columns is zero.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // from one row to the next, in elements

  size_t panels() const { return (columns + kQd8Columns - 1) / kQd8Columns; }
  size_t panelBytes() const;
};

// Bytes from one prepared row to the next.
size_t qd8RowBytes(size_t inputs);

// A row as the product takes it: `numbers` plus 128, and zeros up to qd8RowBytes(inputs).
void prepareQd8Row(const int8_t* numbers, size_t inputs, uint8_t* prepared);

// `rows` prepared rows with their parameters times panels [firstPanel, lastPanel); output is where
// the first row begins.
void multiplyQd8(const Qd8Gemm& product, const uint8_t* prepared,
                 const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output);

}  // namespace hearth::cpu
