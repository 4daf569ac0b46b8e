// SPDX-License-Identifier: Apache-2.0
// Matrix products of uint8 activations and uint8 weights on AVX-512 VNNI, which they require.
// XNNPACK multiplies these in 16 bits. The dot-product instruction needs one signed factor, so 128
// is subtracted from the weights, which the sums of the rows correct.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Rows of one call of the inner kernel, and columns of a panel, to which weights are padded.
inline constexpr size_t kQu8Rows = 6;
inline constexpr size_t kQu8Columns = 16;

// Bytes of packed weights. Panels of 16 columns: 16 constants (int32), then for each 4 inputs 16 x
// 4 weights (int8).
size_t qu8PackedBytes(size_t inputs, size_t columns);

// Packs weights [columns][inputs] with the zero point `weightZero`, and their bias (may be null),
// for inputs with the zero point `inputZero`. `packed` has qu8PackedBytes() bytes, 64-byte
// aligned.
void packQu8(const uint8_t* weights, const int32_t* bias, size_t inputs, size_t columns,
             int32_t inputZero, int32_t weightZero, uint8_t* packed);

struct Qu8Gemm {
  const uint8_t* packed = nullptr;
  size_t inputs = 0;  // at most 32768, so that sums stay within 32 bits
  size_t columns = 0;
  int32_t weightZero = 0;
  float scale = 0;  // input scale * weight scale / output scale
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
};

// Computes output[row][column] for `rows` rows and the columns [firstColumn, lastColumn);
// firstColumn is a multiple of kQu8Columns. Rows of `a` lie `stride` bytes apart, and those of
// `output` outputStride bytes. Rounds to nearest even, then clamps.
void multiplyQu8(const Qu8Gemm& gemm, const uint8_t* a, size_t stride, size_t rows,
                 size_t firstColumn, size_t lastColumn, uint8_t* output, size_t outputStride);

}  // namespace hearth::cpu
