// SPDX-License-Identifier: Apache-2.0
// Matrix products of 16-bit activations and 8-bit weights. Sums are exact: on AVX2 and AVX-512
// pairs of products are added in 32 bits, and what 32 bits hold in all cases is added in 64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// The most rows of one call of the inner kernel, and the columns of a panel.
inline constexpr size_t kQs16Rows = 6;
inline constexpr size_t kQs16Columns = 16;

// output[row][column] = clamp(round((bias[column] + sum over inputs) * factor[column])), halves
// away from zero.
struct Qs16Gemm {
  // Panels of kQs16Columns columns; each has the weights of two inputs for each column, then those
  // of the next two. The last panel and the last pair are padded.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;
  size_t columns = 0;
  const double* bias = nullptr;     // of panels() * kQs16Columns columns
  const double* factors = nullptr;  // as many
  int32_t lowest = 0, highest = 0;  // of the output, within 16 bits
  size_t outputStride = 0;          // elements from one row to the next

  size_t panels() const { return (columns + kQs16Columns - 1) / kQs16Columns; }
  size_t panelBytes() const { return (inputs + 1) / 2 * 2 * kQs16Columns; }
};

// Packs weights [columns][inputs] to `packed` of panels() * panelBytes() bytes.
void packQs16(const Qs16Gemm& product, const int8_t* weights, uint8_t* packed);

// Multiplies `rows` rows of inputs, one after another, by panels [firstPanel, lastPanel). Reads two
// bytes past the last row where the number of inputs is odd. `output` is where the first row
// begins.
void multiplyQs16(const Qs16Gemm& product, const int16_t* inputs, size_t rows, size_t firstPanel,
                  size_t lastPanel, int16_t* output);

}  // namespace hearth::cpu
