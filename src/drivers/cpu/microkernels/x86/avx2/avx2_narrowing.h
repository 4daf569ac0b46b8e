// SPDX-License-Identifier: Apache-2.0
// How our products for AVX2 make bytes of their sums. x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"

namespace hearth::cpu {

// Results as bytes: clamp(zero + factor * sum), rounded to nearest even. XNNPACK rounds and clamps
// in this way, too. The upper bound is applied before the conversion, which has no result for large
// numbers. A copy of it on the stack stays in registers, whatever is written.
template <bool kIsSigned>
class Avx2Narrowing {
 public:
  static constexpr size_t kColumns = 16;

  Avx2Narrowing(int32_t zero, int32_t lowest, int32_t highest)
      : ceiling_(static_cast<float>(highest - zero)),
        zero_(static_cast<int16_t>(zero)),
        lowest_(static_cast<char>(lowest)) {}

  // The steps of a row's columns, in the order in which narrowing leaves them; `factors` has 16
  // numbers.
  HEARTH_AVX2 __m256i words(const __m256i (&sums)[2], const uint8_t* factors) const {
    __m256i steps[2];
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h)
      steps[h] = _mm256_cvtps_epi32(_mm256_min_ps(
          _mm256_mul_ps(_mm256_cvtepi32_ps(sums[h]), _mm256_loadu_ps(reinterpret_cast<const float*>(
                                                         factors + h * sizeof(__m256)))),
          _mm256_set1_ps(ceiling_)));
    return _mm256_adds_epi16(_mm256_packs_epi32(steps[0], steps[1]), _mm256_set1_epi16(zero_));
  }

  // The bytes of two rows. Narrowing puts 4 columns of each half and row next to each other.
  HEARTH_AVX2 __m256i bytes(__m256i first, __m256i second) const {
    const __m256i least = _mm256_set1_epi8(lowest_);
    return _mm256_permutevar8x32_epi32(
        kIsSigned ? _mm256_max_epi8(_mm256_packs_epi16(first, second), least)
                  : _mm256_max_epu8(_mm256_packus_epi16(first, second), least),
        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }

  // Writes as many of a row's columns as there are.
  HEARTH_AVX2 static void store(uint8_t* to, __m128i bytes, size_t columns) {
    if (columns >= kColumns) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
      return;
    }
    uint8_t last[kColumns];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(last), bytes);
    std::memcpy(to, last, columns);
  }

 private:
  float ceiling_;
  int16_t zero_;
  char lowest_;
};

}  // namespace hearth::cpu
