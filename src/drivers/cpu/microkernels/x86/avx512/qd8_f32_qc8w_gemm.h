// SPDX-License-Identifier: Apache-2.0
// Products on AVX-512 VNNI of 8-bit rows that are quantised while a model runs and 8-bit weights
// with a scale for each channel, over the panels that XNNPACK packs, and with its very results.
// XNNPACK's kernel makes every number unsigned again for each panel, on the units that multiply;
// here each row is made unsigned once.
#pragma once

#include <cstddef>
#include <cstdint>

struct xnn_quantization_params;

namespace hearth::cpu {

// The most rows of one call of the inner kernel, and the columns of a panel.
inline constexpr size_t kQd8Rows = 12;
inline constexpr size_t kQd8Columns = 16;
// Inputs of a column that lie together, and the most inputs whose sums stay within 32 bits.
inline constexpr size_t kQd8Group = 8;
inline constexpr size_t kMostQd8Inputs = size_t{1} << 16;

// Whether this CPU has the instructions. Thread-safe.
bool cpuHasQd8Gemm();

// output[row][column] = clamp(bias[column] + scale[column] * rowScale[row] * sum over inputs).
struct Qd8Gemm {
  // Panels of 16 columns: the negative sums of their weights, then for each 8 inputs 16 x 8
  // weights, then 16 scales and 16 biases. Padding is zero.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;
  size_t columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // elements from one row to the next

  size_t panels() const { return (columns + kQd8Columns - 1) / kQd8Columns; }
  size_t panelBytes() const;
};

// Bytes from one prepared row to the next.
size_t qd8RowBytes(size_t inputs);

// Prepares a row for the product: `numbers` plus 128, then zeros up to qd8RowBytes(inputs).
void prepareQd8Row(const int8_t* numbers, size_t inputs, uint8_t* prepared);

// Multiplies `rows` prepared rows by panels [firstPanel, lastPanel); `parameters` are those of the
// rows, and `output` is where the first row begins.
void multiplyQd8(const Qd8Gemm& product, const uint8_t* prepared,
                 const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output);

}  // namespace hearth::cpu
