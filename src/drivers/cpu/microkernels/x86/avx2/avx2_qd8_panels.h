// SPDX-License-Identifier: Apache-2.0
// The panels that XNNPACK packs for its products on AVX2 of 8-bit rows that are quantised while a
// model runs and 8-bit weights with a scale for each channel. Products of ours over them give
// XNNPACK's very results.
#pragma once

#include <hearth_xnnpack.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"
#endif

namespace hearth::cpu {

// output[row][column] = clamp(bias[column] + scale[column] * rowScale[row] * sum over inputs).
struct Avx2Qd8Panels {
  static constexpr size_t kColumns = 8;  // of a panel
  static constexpr size_t kGroup = 8;    // inputs of a column that lie together
  static constexpr size_t kGroupBytes = kColumns * kGroup;
  static constexpr size_t kHeadBytes = kColumns * sizeof(int32_t);

  // Each panel has the negative sums of its columns' weights, then for each 8 inputs 8 x 8 weights,
  // then 8 scales and 8 biases. Padding is zero.
  const uint8_t* packed = nullptr;
  size_t inputs = 0, columns = 0;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // elements from one row to the next

  size_t panels() const { return (columns + kColumns - 1) / kColumns; }
  size_t groups() const { return (inputs + kGroup - 1) / kGroup; }
  size_t panelBytes() const {
    return kHeadBytes + groups() * kGroupBytes + 2 * kColumns * sizeof(float);
  }
  const uint8_t* panel(size_t index) const { return packed + index * panelBytes(); }
  const uint8_t* weights(size_t panelIndex) const { return panel(panelIndex) + kHeadBytes; }
};

#if defined(__x86_64__)

// Writes a row's results of a panel, computed in XNNPACK's order; `output` is where the panel's
// first column lies. `sums` are those of products with the row's numbers as they are.
HEARTH_AVX2 void writeQd8Results(const Avx2Qd8Panels& product, size_t panel, __m256i sums,
                                 const struct xnn_quantization_params& parameters, float* output) {
  const uint8_t* const head = product.panel(panel);
  const auto* const scales = reinterpret_cast<const float*>(
      head + product.panelBytes() - 2 * Avx2Qd8Panels::kColumns * sizeof(float));
  const __m256i negativeSums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(head));
  const __m256i sum = _mm256_add_epi32(
      sums, _mm256_mullo_epi32(negativeSums, _mm256_set1_epi32(parameters.zero_point)));
  const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(parameters.scale));
  const __m256 value = _mm256_fmadd_ps(scaled, _mm256_loadu_ps(scales),
                                       _mm256_loadu_ps(scales + Avx2Qd8Panels::kColumns));
  // In this order a NaN stays a NaN.
  const __m256 raised = _mm256_max_ps(_mm256_set1_ps(product.lowest), value);
  const __m256 result = _mm256_min_ps(_mm256_set1_ps(product.highest), raised);
  const size_t columns = product.columns - panel * Avx2Qd8Panels::kColumns;
  if (columns >= Avx2Qd8Panels::kColumns) {
    _mm256_storeu_ps(output, result);
    return;
  }
  float last[Avx2Qd8Panels::kColumns];
  _mm256_storeu_ps(last, result);
  std::memcpy(output, last, columns * sizeof(float));
}

#endif

}  // namespace hearth::cpu
