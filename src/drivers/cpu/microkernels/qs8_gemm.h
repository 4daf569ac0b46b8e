// SPDX-License-Identifier: Apache-2.0
// Matrix products of int8 on AVX-512 VNNI, over the panels that XNNPACK packs for that. Its own
// kernel has one panel in work and makes the inputs unsigned each time it reads them; here that is
// done once, before, and two panels share an input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

inline constexpr size_t kQs8Columns = 16;  // of a panel
inline constexpr size_t kQs8Group = 8;     // inputs of a column that lie together
// Rows that all inner kernels divide.
inline constexpr size_t kQs8Rows = 12;

// output[row][column] = clamp(zero point + factor[column] * (bias[column] + sum over inputs)).
struct Qs8Gemm {
  // For each 16 columns 16 biases (int32), for each group of inputs 16 x 8 weights, 16 factors
  // (float); the last panel is padded.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;  // a multiple of kQs8Group
  size_t columns = 0;
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
  size_t outputStride = 0;          // from one row to the next

  size_t panels() const { return (columns + kQs8Columns - 1) / kQs8Columns; }
  size_t panelBytes() const { return kQs8Columns * (2 * sizeof(int32_t) + inputs); }
};

// `count` bytes less -128: what the product takes as inputs. The two may be the same.
void makeUnsigned(const int8_t* from, size_t count, uint8_t* to);

// `count` rows of panels [firstPanel, lastPanel). Rows of inputs lie `stride` bytes apart; output
// is where the first row begins. Rounds to nearest even, then clamps, as XNNPACK does.
void multiplyQs8(const Qs8Gemm& product, const uint8_t* rows, size_t stride, size_t count,
                 size_t firstPanel, size_t lastPanel, int8_t* output);

}  // namespace hearth::cpu
