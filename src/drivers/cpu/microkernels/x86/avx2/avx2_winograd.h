// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 3 x 3 bytes on AVX2, by Winograd's way: for a tile of 2 x 2 outputs,
// the 4 x 4 inputs under it and the weights are transformed to 16 points each, and a product at
// each point takes the place of 36 products. All numbers are integers of 16 bits, and the
// transformed weights are four times the usual ones, which have fractions; so the sums are exact.
//
// Tiles of 4 x 4 outputs have 36 points in place of 144 products. Their weights are 576 times the
// usual ones, and sums leave 32 bits. What is left of a sum modulo 2^32 tells the output modulo
// 2^26, which is enough where the outputs of a column lie closer together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

inline constexpr size_t kWinogradMostSide = 4;  // outputs of a tile in a row
inline constexpr size_t kWinogradMostPoints = (kWinogradMostSide + 2) * (kWinogradMostSide + 2);
inline constexpr size_t kWinogradChannels = 16;  // the input channels are a multiple of this
inline constexpr size_t kWinogradColumns = 16;   // of a panel

struct Avx2Winograd {
  const uint8_t* packed = nullptr;
  size_t side = 2;                   // outputs of a tile in a row: 2 or 4
  size_t channels = 0, columns = 0;  // input and output channels
  bool isSigned = true;              // int8; else uint8
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps

  size_t panels() const { return (columns + kWinogradColumns - 1) / kWinogradColumns; }
  size_t window() const { return side + 2; }  // inputs under a tile in a row
  size_t points() const { return window() * window(); }
  size_t outputs() const { return side * side; }  // of a tile
};

// Whether this CPU has AVX2, and a product with tiles of this side can have so many input channels
// and such numbers. Thread-safe.
bool hasAvx2Winograd(size_t side, size_t channels, bool isSigned);

size_t avx2WinogradBytes(const Avx2Winograd& product);

// Packs weights [columns][3][3][channels] with the zero point `weightZero` (0 for int8), for inputs
// with the zero point `inputZero`, a bias for each column (may be null) and the columns' factors
// (input scale * weight scale / output scale). `packed` has avx2WinogradBytes() bytes.
void packAvx2Winograd(const Avx2Winograd& product, const uint8_t* weights, int32_t weightZero,
                      int32_t inputZero, const int32_t* bias, const float* factors,
                      uint8_t* packed);

// Transforms the inputs, whose zero point is `inputZero`, under one tile; inputs[y * window() + x]
// points to the channels of an input. `transformed` has room for `tiles` of them:
// [point][tile][channel].
void transformAvx2Winograd(const Avx2Winograd& product, int32_t inputZero,
                           const uint8_t* const* inputs, size_t tile, size_t tiles,
                           int16_t* transformed);

// Bytes of scratch memory for multiplyAvx2Winograd().
size_t avx2WinogradScratch(const Avx2Winograd& product);

// Multiplies transformed tiles by the panels [firstPanel, lastPanel).
// outputs[(tile * side + y) * side + x] points to the channels of an output, or is null where there
// is none. Rounds to nearest even, then clamps.
void multiplyAvx2Winograd(const Avx2Winograd& product, const int16_t* transformed, size_t tiles,
                          size_t firstPanel, size_t lastPanel, uint8_t* const* outputs,
                          uint8_t* scratch);

}  // namespace hearth::cpu
