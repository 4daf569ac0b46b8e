// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/avx2_qd8_row.h"

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
  for (size_t p = 0; p < kPanels; ++p) {
    const __m256i low = _mm256_hadd_epi32(sums[p][0], sums[p][1]);
    const __m256i high = _mm256_hadd_epi32(sums[p][2], sums[p][3]);
    // Even columns, then odd ones.
    const __m256i both = _mm256_hadd_epi32(low, high);
    const __m256i ordered =
        _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    writeQd8Results(product, panel + p, ordered, parameters,
                    output + (panel + p) * Avx2Qd8Panels::kColumns);
  }
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

#else

void multiplyQd8Row(const Avx2Qd8Panels&, const int16_t*, const struct xnn_quantization_params&,
                    size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
