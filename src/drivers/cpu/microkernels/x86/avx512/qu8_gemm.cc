// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx512/qu8_gemm.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = 4;  // inputs that one dot-product instruction sums

size_t groupsOf(size_t inputs) {
  return (inputs + kGroup - 1) / kGroup;
}
size_t panelBytes(size_t inputs) {
  return kQu8Columns * (sizeof(int32_t) + groupsOf(inputs) * kGroup);
}

}  // namespace

size_t qu8PackedBytes(size_t inputs, size_t columns) {
  return (columns + kQu8Columns - 1) / kQu8Columns * panelBytes(inputs);
}

void packQu8(const uint8_t* weights, const int32_t* bias, size_t inputs, size_t columns,
             int32_t inputZero, int32_t weightZero, uint8_t* packed) {
  const int32_t signedZero = weightZero - 128;
  std::memset(packed, 0, qu8PackedBytes(inputs, columns));
  for (size_t column = 0; column < columns; ++column) {
    uint8_t* panel = packed + column / kQu8Columns * panelBytes(inputs);
    const size_t lane = column % kQu8Columns;
    uint8_t* values = panel + kQu8Columns * sizeof(int32_t) + lane * kGroup;
    int32_t sum = 0;
    for (size_t i = 0; i < inputs; ++i) {
      const int32_t weight = weights[column * inputs + i] - 128;
      values[i / kGroup * kQu8Columns * kGroup + i % kGroup] = static_cast<uint8_t>(weight);
      sum += weight;
    }
    // The arithmetic is unsigned, because a hostile bias may make it wrap, as in the kernels.
    const uint32_t constant =
        static_cast<uint32_t>(bias != nullptr ? bias[column] : 0) -
        static_cast<uint32_t>(inputZero * sum) +
        static_cast<uint32_t>(static_cast<int32_t>(inputs) * inputZero * signedZero);
    std::memcpy(panel + lane * sizeof(int32_t), &constant, sizeof(constant));
  }
}

#if defined(__x86_64__)

namespace {

using Vector = WholeVector;

HEARTH_VNNI_FUNCTION int32_t sumOfRow(const uint8_t* row, size_t count) {
  const __m512i zero = _mm512_setzero_si512();
  __m512i sums = zero;
  for (; count >= 64; count -= 64, row += 64)
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_loadu_si512(row), zero));
  if (count > 0) {
    const __mmask64 mask = ~uint64_t{0} >> (64 - count);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(mask, row), zero));
  }
  return static_cast<int32_t>(_mm512_reduce_add_epi64(sums));
}

// Multiplies kRows rows by kPanels panels of 16 columns.
template <size_t kRows, size_t kPanels>
HEARTH_VNNI_FUNCTION void multiplyTile(const Qu8Gemm& gemm, const uint8_t* a, size_t stride,
                                       const int32_t* rowTerms, const uint8_t* panel,
                                       size_t columns, uint8_t* output, size_t outputStride) {
  const size_t bytes = panelBytes(gemm.inputs);
  const size_t groups = groupsOf(gemm.inputs);
  const size_t wholeGroups = gemm.inputs / kGroup;
  __m512i sums[kRows][kPanels];
#pragma GCC unroll 4
  for (size_t p = 0; p < kPanels; ++p) {
    const __m512i constants = _mm512_load_si512(panel + p * bytes);
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r)
      sums[r][p] = _mm512_add_epi32(constants, _mm512_set1_epi32(rowTerms[r]));
  }
  const uint8_t* weights = panel + kQu8Columns * sizeof(int32_t);
  // The inputs behind the last whole group are copied: a row may end where readable memory ends.
  uint8_t tails[kRows * kGroup] = {};
  const size_t rest = gemm.inputs % kGroup;
  if (rest != 0)
    for (size_t r = 0; r < kRows; ++r)
      std::memcpy(tails + r * kGroup, a + r * stride + wholeGroups * kGroup, rest);
  size_t end = wholeGroups;
  for (size_t g = 0; g < groups; end = groups, a = tails, stride = kGroup) {
    for (; g < end; ++g, a += kGroup) {
      __m512i factors[kPanels];
#pragma GCC unroll 4
      for (size_t p = 0; p < kPanels; ++p)
        factors[p] = _mm512_load_si512(weights + p * bytes + g * kQu8Columns * kGroup);
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        int32_t four;
        std::memcpy(&four, a + r * stride, sizeof(four));
        const __m512i inputs = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (size_t p = 0; p < kPanels; ++p) Vector::dot(sums[r][p], inputs, factors[p]);
      }
    }
  }
  const __m512 scale = _mm512_set1_ps(gemm.scale);
  const __m512 ceiling = _mm512_set1_ps(static_cast<float>(gemm.highest - gemm.outputZero));
  const __m512i zeroPoint = _mm512_set1_epi32(gemm.outputZero);
  const __m512i floor = _mm512_set1_epi32(gemm.lowest);
  const __m512i top = _mm512_set1_epi32(gemm.highest);
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kPanels; ++p) {
      // The upper bound is applied before the conversion, which has no result for large numbers.
      const __m512 scaled =
          _mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[r][p]), scale), ceiling);
      __m512i steps = _mm512_cvtps_epi32(scaled);
      steps = _mm512_max_epi32(steps, _mm512_sub_epi32(floor, zeroPoint));
      steps = _mm512_min_epi32(_mm512_add_epi32(steps, zeroPoint), top);
      const size_t left = columns - p * kQu8Columns;
      const __mmask16 mask =
          left >= kQu8Columns ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
      _mm_mask_storeu_epi8(output + r * outputStride + p * kQu8Columns, mask,
                           _mm512_cvtepi32_epi8(steps));
    }
  }
}

template <size_t kRows>
HEARTH_VNNI_FUNCTION void multiplyRows(const Qu8Gemm& gemm, const uint8_t* a, size_t stride,
                                       const int32_t* rowTerms, size_t firstColumn,
                                       size_t lastColumn, uint8_t* output, size_t outputStride) {
  const size_t bytes = panelBytes(gemm.inputs);
  size_t column = firstColumn;
  while (column < lastColumn) {
    const uint8_t* panel = gemm.packed + column / kQu8Columns * bytes;
    const size_t columns = lastColumn - column;
    const size_t panels = std::min<size_t>(4, (columns + kQu8Columns - 1) / kQu8Columns);
    uint8_t* out = output + column;
    switch (panels) {
      case 4:
        multiplyTile<kRows, 4>(gemm, a, stride, rowTerms, panel, columns, out, outputStride);
        break;
      case 3:
        multiplyTile<kRows, 3>(gemm, a, stride, rowTerms, panel, columns, out, outputStride);
        break;
      case 2:
        multiplyTile<kRows, 2>(gemm, a, stride, rowTerms, panel, columns, out, outputStride);
        break;
      default:
        multiplyTile<kRows, 1>(gemm, a, stride, rowTerms, panel, columns, out, outputStride);
    }
    column += panels * kQu8Columns;
  }
}

}  // namespace

HEARTH_VNNI_FUNCTION void multiplyQu8(const Qu8Gemm& gemm, const uint8_t* a, size_t stride,
                                      size_t rows, size_t firstColumn, size_t lastColumn,
                                      uint8_t* output, size_t outputStride) {
  const int32_t signedZero = gemm.weightZero - 128;
  // Columns of a block, whose weights stay in the first-level cache while all rows pass.
  constexpr size_t kBlock = 4 * kQu8Columns;
  constexpr size_t kMaxRows = 64;
  int32_t rowTerms[kMaxRows];
  for (size_t first = 0; first < rows; first += kMaxRows) {
    const size_t count = std::min(kMaxRows, rows - first);
    for (size_t r = 0; r < count; ++r)
      rowTerms[r] =
          signedZero == 0 ? 0 : -signedZero * sumOfRow(a + (first + r) * stride, gemm.inputs);
    for (size_t column = firstColumn; column < lastColumn; column += kBlock) {
      const size_t end = std::min(lastColumn, column + kBlock);
      size_t row = 0;
      for (; row + kQu8Rows <= count; row += kQu8Rows)
        multiplyRows<kQu8Rows>(gemm, a + (first + row) * stride, stride, rowTerms + row, column,
                               end, output + (first + row) * outputStride, outputStride);
      for (; row < count; ++row)
        multiplyRows<1>(gemm, a + (first + row) * stride, stride, rowTerms + row, column, end,
                        output + (first + row) * outputStride, outputStride);
    }
  }
}

#else

void multiplyQu8(const Qu8Gemm&, const uint8_t*, size_t, size_t, size_t, size_t, uint8_t*, size_t) {
}

#endif

}  // namespace hearth::cpu
