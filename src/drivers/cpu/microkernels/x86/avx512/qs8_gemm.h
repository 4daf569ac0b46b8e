// SPDX-License-Identifier: Apache-2.0
// Matrix products of int8 on AVX-512 VNNI, over the panels that XNNPACK packs. XNNPACK's kernel
// multiplies one panel at a time and makes inputs unsigned whenever it reads them. Here inputs are
// made unsigned once, and two panels share each input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::cpu {

inline constexpr size_t kQs8Columns = 16;  // of a panel
inline constexpr size_t kQs8Group = 8;     // inputs of a column that lie together
// A multiple of the rows of every inner kernel.
inline constexpr size_t kQs8Rows = 12;

// output[row][column] = clamp(zero point + factor[column] * (bias[column] + sum over inputs)).
struct Qs8Gemm {
  // Panels of 16 columns: 16 biases (int32), for each group of inputs 16 x 8 weights, 16 factors
  // (float). The last panel is padded.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;  // a multiple of kQs8Group
  size_t columns = 0;
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
  size_t outputStride = 0;          // bytes from one row to the next

  size_t panels() const { return (columns + kQs8Columns - 1) / kQs8Columns; }
  size_t panelBytes() const { return kQs8Columns * (2 * sizeof(int32_t) + inputs); }
};

// Adds 128 to `count` bytes, which makes them inputs of the product. `from` and `to` may be the
// same memory.
void makeUnsigned(const int8_t* from, size_t count, uint8_t* to);

// Multiplies `count` rows by panels [firstPanel, lastPanel). Rows of inputs lie `stride` bytes
// apart; `output` is where the first row begins. Rounds to nearest even, then clamps, as XNNPACK.
void multiplyQs8(const Qs8Gemm& product, const uint8_t* rows, size_t stride, size_t count,
                 size_t firstPanel, size_t lastPanel, int8_t* output);

// The same for rows that lie in pieces of `pieceBytes`, a multiple of kQs8Group where there are
// several: piece p of row r is at rows[r] + places[p]. All pieces have the inputs of the product.
void multiplyQs8(const Qs8Gemm& product, std::span<const uint8_t* const> rows,
                 std::span<const size_t> places, size_t pieceBytes, size_t firstPanel,
                 size_t lastPanel, int8_t* output);

}  // namespace hearth::cpu
