// SPDX-License-Identifier: Apache-2.0
#include "ops/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::ops {
namespace {

#if defined(__x86_64__)
// Compilers call a function for each conversion on the baseline x86-64, and with F16C convert one
// element at a time.
#define HEARTH_F16C __attribute__((target("avx,f16c")))

bool hasConversion() {
  static const bool isThere = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return isThere;
}

constexpr size_t kLanes = 8;

HEARTH_F16C void widenByVectors(const Half* source, size_t count, float* target) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    _mm256_storeu_ps(
        target + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
  for (; i < count; ++i) target[i] = static_cast<float>(source[i]);
}

HEARTH_F16C void narrowByVectors(const float* source, size_t count, Half* target) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) target[i] = static_cast<Half>(source[i]);
}
#endif

}  // namespace

void widenHalves(const Half* source, size_t count, float* target) {
#if defined(__x86_64__)
  if (hasConversion()) return widenByVectors(source, count, target);
#endif
  for (size_t i = 0; i < count; ++i) target[i] = static_cast<float>(source[i]);
}

void narrowFloats(const float* source, size_t count, Half* target) {
#if defined(__x86_64__)
  if (hasConversion()) return narrowByVectors(source, count, target);
#endif
  for (size_t i = 0; i < count; ++i) target[i] = static_cast<Half>(source[i]);
}

}  // namespace hearth::ops
