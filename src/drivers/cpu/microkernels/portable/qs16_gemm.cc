// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/qs16_gemm.h"

#include <algorithm>
#include <cstring>

#include "base/vector_dispatch.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "ops/symmetric16.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kPairBytes = 2 * kQs16Columns;

// The sums of kQs16Rows rows and two panels, in 64 bits.
struct Sums {
  int64_t at[kQs16Rows][2 * kQs16Columns];
};

// Rounds the sums of `rows` rows to outputs, `count` columns from `column` on.
void storeRows(const Qs16Gemm& product, const Sums& sums, size_t rows, size_t column, size_t count,
               int16_t* output) {
  const Sums* const from = &sums;
  base::onWidestVectors([=, bias = product.bias + column, factors = product.factors + column,
                         lowest = static_cast<double>(product.lowest),
                         highest = static_cast<double>(product.highest),
                         stride = product.outputStride]() HEARTH_INLINE {
    for (size_t r = 0; r < rows; ++r) {
      int16_t* const to = output + r * stride;
#pragma GCC ivdep
      for (size_t i = 0; i < count; ++i) {
        double value = (static_cast<double>(from->at[r][i]) + bias[i]) * factors[i];
        value = value < lowest ? lowest : value;
        value = value > highest ? highest : value;
        to[i] = static_cast<int16_t>(ops::nearestInteger(value));
      }
    }
  });
}

// For CPUs without AVX2: row by row and panel by panel.
void multiplyPortably(const Qs16Gemm& product, const int16_t* inputs, size_t rows,
                      size_t firstPanel, size_t lastPanel, int16_t* output) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t panel = firstPanel; panel < lastPanel; ++panel) {
      const auto* const weights =
          reinterpret_cast<const int8_t*>(product.packed) + panel * product.panelBytes();
      Sums sums{};
      for (size_t i = 0; i < product.inputs; ++i) {
        const int32_t input = inputs[r * product.inputs + i];
        const int8_t* const lanes = weights + i / 2 * kPairBytes + i % 2;
        for (size_t lane = 0; lane < kQs16Columns; ++lane)
          sums.at[0][lane] += input * lanes[2 * lane];
      }
      const size_t column = panel * kQs16Columns;
      storeRows(product, sums, 1, column, std::min(kQs16Columns, product.columns - column),
                output + r * product.outputStride + column);
    }
}

}  // namespace

void packQs16(const Qs16Gemm& product, const int8_t* weights, uint8_t* packed) {
  std::memset(packed, 0, product.panels() * product.panelBytes());
  for (size_t column = 0; column < product.columns; ++column) {
    uint8_t* const panel = packed + column / kQs16Columns * product.panelBytes();
    const size_t lane = column % kQs16Columns;
    for (size_t i = 0; i < product.inputs; ++i)
      panel[(i / 2 * kQs16Columns + lane) * 2 + i % 2] =
          static_cast<uint8_t>(weights[column * product.inputs + i]);
  }
}

#if defined(__x86_64__)

namespace {

// Sums of so many pairs of products stay within 32 bits, whatever the numbers.
constexpr size_t kMostPairs = 255;

// Two neighbouring inputs.
inline int32_t pairAt(const int16_t* inputs) {
  int32_t pair = 0;
  std::memcpy(&pair, inputs, sizeof(pair));
  return pair;
}

// Writes, or adds to `sums`, the products of kRows rows and kPanels panels for pairs of inputs
// [first, last).
template <size_t kRows, size_t kPanels>
__attribute__((target("avx2"))) void addProducts256(const uint8_t* panel, size_t panelBytes,
                                                    const int16_t* inputs, size_t rowSize,
                                                    size_t first, size_t last, Sums* sums) {
  constexpr size_t kHalves = 2 * kPanels;
  __m256i parts[kRows][kHalves];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t h = 0; h < kHalves; ++h) parts[r][h] = _mm256_setzero_si256();
  for (size_t p = first; p < last; ++p) {
    __m256i weights[kHalves];
#pragma GCC unroll 4
    for (size_t h = 0; h < kHalves; ++h)
      weights[h] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(
          panel + h / 2 * panelBytes + p * kPairBytes + h % 2 * sizeof(__m128i))));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m256i pair = _mm256_set1_epi32(pairAt(inputs + r * rowSize + 2 * p));
#pragma GCC unroll 4
      for (size_t h = 0; h < kHalves; ++h)
        parts[r][h] = _mm256_add_epi32(parts[r][h], _mm256_madd_epi16(pair, weights[h]));
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t h = 0; h < kHalves; ++h)
#pragma GCC unroll 2
      for (size_t q = 0; q < 2; ++q) {
        auto* const at = reinterpret_cast<__m256i*>(sums->at[r] + 8 * h + 4 * q);
        const __m256i wide =
            _mm256_cvtepi32_epi64(q == 0 ? _mm256_castsi256_si128(parts[r][h])
                                         : _mm256_extracti128_si256(parts[r][h], 1));
        _mm256_storeu_si256(at, first == 0 ? wide : _mm256_add_epi64(wide, _mm256_loadu_si256(at)));
      }
}

// The same with vectors of twice the size.
template <size_t kRows, size_t kPanels>
__attribute__((target("avx512f,avx512bw"))) void addProducts512(const uint8_t* panel,
                                                                size_t panelBytes,
                                                                const int16_t* inputs,
                                                                size_t rowSize, size_t first,
                                                                size_t last, Sums* sums) {
  __m512i parts[kRows][kPanels];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t h = 0; h < kPanels; ++h) parts[r][h] = _mm512_setzero_si512();
  for (size_t p = first; p < last; ++p) {
    __m512i weights[kPanels];
#pragma GCC unroll 2
    for (size_t h = 0; h < kPanels; ++h)
      weights[h] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(panel + h * panelBytes + p * kPairBytes)));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i pair = _mm512_set1_epi32(pairAt(inputs + r * rowSize + 2 * p));
#pragma GCC unroll 2
      for (size_t h = 0; h < kPanels; ++h)
        parts[r][h] = _mm512_add_epi32(parts[r][h], _mm512_madd_epi16(pair, weights[h]));
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t h = 0; h < kPanels; ++h)
#pragma GCC unroll 2
      for (size_t q = 0; q < 2; ++q) {
        int64_t* const at = sums->at[r] + 16 * h + 8 * q;
        const __m512i wide =
            _mm512_cvtepi32_epi64(q == 0 ? _mm512_castsi512_si256(parts[r][h])
                                         : _mm512_extracti64x4_epi64(parts[r][h], 1));
        _mm512_storeu_si512(at, first == 0 ? wide : _mm512_add_epi64(wide, _mm512_loadu_si512(at)));
      }
}

template <bool kIs512, size_t kRows, size_t kPanels>
void multiplyTile(const Qs16Gemm& product, const int16_t* inputs, size_t panel, int16_t* output) {
  const uint8_t* const weights = product.packed + panel * product.panelBytes();
  const size_t pairs = (product.inputs + 1) / 2;
  Sums sums;
  for (size_t first = 0; first == 0 || first < pairs; first += kMostPairs) {
    const size_t last = std::min(pairs, first + kMostPairs);
    if constexpr (kIs512)
      addProducts512<kRows, kPanels>(weights, product.panelBytes(), inputs, product.inputs, first,
                                     last, &sums);
    else
      addProducts256<kRows, kPanels>(weights, product.panelBytes(), inputs, product.inputs, first,
                                     last, &sums);
  }
  const size_t column = panel * kQs16Columns;
  storeRows(product, sums, kRows, column,
            std::min(kPanels * kQs16Columns, product.columns - column), output + column);
}

template <bool kIs512, size_t kRows>
void multiplyPanels(const Qs16Gemm& product, const int16_t* inputs, size_t firstPanel,
                    size_t lastPanel, int16_t* output) {
  // AVX2 has 16 registers, 4 of which hold the sums of a row and two panels.
  constexpr size_t kTogether = kIs512 || kRows <= 2 ? 2 : 1;
  size_t panel = firstPanel;
  for (; panel + kTogether <= lastPanel; panel += kTogether)
    multiplyTile<kIs512, kRows, kTogether>(product, inputs, panel, output);
  if (panel < lastPanel) multiplyTile<kIs512, kRows, 1>(product, inputs, panel, output);
}

template <bool kIs512, size_t kRows = kQs16Rows>
void multiplyRows(const Qs16Gemm& product, const int16_t* inputs, size_t rows, size_t firstPanel,
                  size_t lastPanel, int16_t* output) {
  for (; rows >= kRows; rows -= kRows) {
    multiplyPanels<kIs512, kRows>(product, inputs, firstPanel, lastPanel, output);
    inputs += kRows * product.inputs;
    output += kRows * product.outputStride;
  }
  if constexpr (kRows > 1)
    if (rows > 0)
      multiplyRows<kIs512, kRows - 1>(product, inputs, rows, firstPanel, lastPanel, output);
}

bool hasAvx512Words() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return has;
}

}  // namespace

void multiplyQs16(const Qs16Gemm& product, const int16_t* inputs, size_t rows, size_t firstPanel,
                  size_t lastPanel, int16_t* output) {
  if (hasAvx512Words())
    multiplyRows<true>(product, inputs, rows, firstPanel, lastPanel, output);
  else if (hasAvx2())
    multiplyRows<false>(product, inputs, rows, firstPanel, lastPanel, output);
  else
    multiplyPortably(product, inputs, rows, firstPanel, lastPanel, output);
}

#else

void multiplyQs16(const Qs16Gemm& product, const int16_t* inputs, size_t rows, size_t firstPanel,
                  size_t lastPanel, int16_t* output) {
  multiplyPortably(product, inputs, rows, firstPanel, lastPanel, output);
}

#endif

}  // namespace hearth::cpu
