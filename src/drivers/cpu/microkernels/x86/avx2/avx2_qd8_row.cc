// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_row.h"

#include <algorithm>

namespace hearth::cpu {

size_t qd8RowNumbers(const Avx2Qd8Panels& product) {
  return product.groups() * Avx2Qd8Panels::kGroup;
}

void widenQd8Row(const Avx2Qd8Panels& product, const int8_t* row, int16_t* widened) {
  std::copy_n(row, product.inputs, widened);
  std::fill(widened + product.inputs, widened + qd8RowNumbers(product), int16_t{0});
}

#if defined(__x86_64__)

namespace {

constexpr size_t kPanelsTogether = 4;
constexpr size_t kPairs = Avx2Qd8Panels::kColumns / 2;  // of columns, which share a vector
constexpr size_t kPairBytes = Avx2Qd8Panels::kGroupBytes / kPairs;
// How far ahead of their use weights are fetched.
constexpr size_t kGroupsAhead = 2048 / Avx2Qd8Panels::kGroupBytes;

// Adds the products of `groups` groups of inputs. The weights that are fetched lie `ahead` bytes
// behind those that are read.
template <size_t kPanels>
HEARTH_AVX2 void addGroups(__m256i (&sums)[kPanels][kPairs], const int16_t* row,
                           const uint8_t* weights, size_t panelBytes, size_t groups, size_t ahead) {
  for (size_t g = 0; g < groups; ++g) {
    const __m256i inputs = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + g * Avx2Qd8Panels::kGroup)));
#pragma GCC unroll 4
    for (size_t p = 0; p < kPanels; ++p) {
      const uint8_t* const group = weights + p * panelBytes + g * Avx2Qd8Panels::kGroupBytes;
      _mm_prefetch(reinterpret_cast<const char*>(group + ahead), _MM_HINT_T0);
#pragma GCC unroll 4
      for (size_t pair = 0; pair < kPairs; ++pair) {
        const __m256i words = _mm256_cvtepi8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(group + pair * kPairBytes)));
        sums[p][pair] = _mm256_add_epi32(sums[p][pair], _mm256_madd_epi16(inputs, words));
      }
    }
  }
}

// The sums of a panel's columns, in order.
HEARTH_AVX2 __m256i sumsOfColumns(const __m256i (&sums)[kPairs]) {
  const __m256i low = _mm256_hadd_epi32(sums[0], sums[1]);
  const __m256i high = _mm256_hadd_epi32(sums[2], sums[3]);
  // Even columns, then odd ones.
  const __m256i both = _mm256_hadd_epi32(low, high);
  return _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

template <size_t kPanels>
HEARTH_AVX2_FUNCTION void multiplyPanels(const Avx2Qd8Panels& product, const int16_t* row,
                                         const struct xnn_quantization_params& parameters,
                                         size_t panel, float* output) {
  __m256i sums[kPanels][kPairs];
#pragma GCC unroll 4
  for (size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 4
    for (size_t pair = 0; pair < kPairs; ++pair) sums[p][pair] = _mm256_setzero_si256();
  const size_t panelBytes = product.panelBytes();
  const uint8_t* const weights = product.weights(panel);
  const size_t groups = product.groups();
  // At the end of panels the next ones are fetched.
  const size_t last = std::min(groups, kGroupsAhead);
  const size_t first = groups - last;
  addGroups<kPanels>(sums, row, weights, panelBytes, first,
                     kGroupsAhead * Avx2Qd8Panels::kGroupBytes);
  addGroups<kPanels>(sums, row + first * Avx2Qd8Panels::kGroup,
                     weights + first * Avx2Qd8Panels::kGroupBytes, panelBytes, last,
                     kPanels * panelBytes - first * Avx2Qd8Panels::kGroupBytes);
#pragma GCC unroll 4
  for (size_t p = 0; p < kPanels; ++p)
    writeQd8Results(product, panel + p, sumsOfColumns(sums[p]), parameters,
                    output + (panel + p) * Avx2Qd8Panels::kColumns);
}

// Multiplies kRows rows by one panel. `fetches` says whether its weights come from memory.
template <size_t kRows>
HEARTH_AVX2_FUNCTION void multiplyRows(const Avx2Qd8Panels& product, const int16_t* rows,
                                       const struct xnn_quantization_params* parameters,
                                       size_t panel, bool fetches, float* output) {
  __m256i sums[kRows][kPairs];
#pragma GCC unroll 3
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t pair = 0; pair < kPairs; ++pair) sums[r][pair] = _mm256_setzero_si256();
  const uint8_t* group = product.weights(panel);
  const size_t stride = qd8RowNumbers(product);
  // The next panel follows.
  const size_t ahead = fetches ? kGroupsAhead * Avx2Qd8Panels::kGroupBytes : 0;
  for (size_t i = 0; i < stride; i += Avx2Qd8Panels::kGroup, group += Avx2Qd8Panels::kGroupBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(group + ahead), _MM_HINT_T0);
#pragma GCC unroll 4
    for (size_t pair = 0; pair < kPairs; ++pair) {
      const __m256i words = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(group + pair * kPairBytes)));
      const int16_t* at = rows + i;
      // Else g++ 14 keeps all rows' inputs in registers, and sums in memory.
      asm("" : "+r"(at));
#pragma GCC unroll 3
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i inputs = _mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + r * stride)));
        sums[r][pair] = _mm256_add_epi32(sums[r][pair], _mm256_madd_epi16(inputs, words));
        asm("" : "+x"(sums[r][pair]));
      }
    }
  }
#pragma GCC unroll 3
  for (size_t r = 0; r < kRows; ++r)
    writeQd8Results(product, panel, sumsOfColumns(sums[r]), parameters[r],
                    output + r * product.outputStride + panel * Avx2Qd8Panels::kColumns);
}

}  // namespace

void multiplyQd8Row(const Avx2Qd8Panels& product, const int16_t* widened,
                    const struct xnn_quantization_params& parameters, size_t firstPanel,
                    size_t lastPanel, float* output) {
  size_t panel = firstPanel;
  for (; panel + kPanelsTogether <= lastPanel; panel += kPanelsTogether)
    multiplyPanels<kPanelsTogether>(product, widened, parameters, panel, output);
  for (; panel < lastPanel; ++panel) multiplyPanels<1>(product, widened, parameters, panel, output);
}

void multiplyQd8Rows(const Avx2Qd8Panels& product, const int16_t* widened,
                     const struct xnn_quantization_params* parameters, size_t rows,
                     size_t firstPanel, size_t lastPanel, float* output) {
  constexpr size_t kMostTogether = 3;
  using Multiply = decltype(&multiplyRows<1>);
  constexpr Multiply kMultiply[] = {multiplyRows<1>, multiplyRows<2>, multiplyRows<3>};
  for (size_t panel = firstPanel; panel < lastPanel; ++panel)
    for (size_t row = 0, count = 0; row < rows; row += count) {
      // Of four rows two and two.
      count = rows - row == 4 ? 2 : std::min(kMostTogether, rows - row);
      kMultiply[count - 1](product, widened + row * qd8RowNumbers(product), parameters + row, panel,
                           row == 0, output + row * product.outputStride);
    }
}

#else

void multiplyQd8Rows(const Avx2Qd8Panels&, const int16_t*, const struct xnn_quantization_params*,
                     size_t, size_t, size_t, float*) {}
void multiplyQd8Row(const Avx2Qd8Panels&, const int16_t*, const struct xnn_quantization_params&,
                    size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
