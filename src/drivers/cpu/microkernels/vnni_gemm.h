// SPDX-License-Identifier: Apache-2.0
// Matrix products of uint8 activations and uint8 weights on AVX-512 VNNI. XNNPACK multiplies these
// in 16 bits; the dot-product instruction wants one signed factor, so weights are stored less 128
// and the difference is put right with the sums of the rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Whether this CPU has the instructions.
bool hasVnniGemm();

// Rows that one call of the inner kernel computes, and columns that packed weights are padded to.
inline constexpr size_t kVnniRows = 6;
inline constexpr size_t kVnniColumns = 16;

// Packed weights: for each 16 columns their 16 int32 constants, then for each 4 inputs 16 x 4 int8.
size_t vnniPackedBytes(size_t inputs, size_t columns);

// Packs weights [columns][inputs] (zero point `weightZero`) with their bias (may be null) for
// inputs of zero point `inputZero`. `packed` has vnniPackedBytes() bytes, 64-byte aligned.
void vnniPack(const uint8_t* weights, const int32_t* bias, size_t inputs, size_t columns,
              int32_t inputZero, int32_t weightZero, uint8_t* packed);

struct VnniGemm {
  const uint8_t* packed = nullptr;
  size_t inputs = 0;  // at most 32768, so that sums stay within 32 bits
  size_t columns = 0;
  int32_t weightZero = 0;
  float scale = 0;  // input scale * weight scale / output scale
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
};

// output[row][column] for `rows` rows and the columns [firstColumn, lastColumn); firstColumn is a
// multiple of kVnniColumns. Rows of `a` lie `stride` bytes apart, up to 3 readable bytes behind the
// last; rows of `output` outputStride bytes apart. Rounds to nearest even, then clamps.
void vnniMultiply(const VnniGemm& gemm, const uint8_t* a, size_t stride, size_t rows,
                  size_t firstColumn, size_t lastColumn, uint8_t* output, size_t outputStride);

}  // namespace hearth::cpu
