// SPDX-License-Identifier: Apache-2.0
#include "ops/float_sums.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::ops {

#if defined(__x86_64__)
namespace {

// With intrinsics: GCC divides the vectors of generic code, and what it makes of loops widens
// registers. Vectors of AVX-512 are not faster.
#define HEARTH_AVX2 __attribute__((target("avx2")))
#define HEARTH_AVX2_INLINE HEARTH_AVX2 inline __attribute__((always_inline))

constexpr int64_t kDoubles = 4;

HEARTH_AVX2_INLINE __m256d widened(const float* source) {
  return _mm256_cvtps_pd(_mm_loadu_ps(source));
}

// Lanes of the last numbers of a row, fewer than kDoubles.
HEARTH_AVX2_INLINE __m128i maskOf(int64_t count) {
  return _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(count)), _mm_setr_epi32(0, 1, 2, 3));
}

HEARTH_AVX2_INLINE __m256d widened(const float* source, __m128i mask) {
  return _mm256_cvtps_pd(_mm_maskload_ps(source, mask));
}

// The sums of four rows of `count` numbers, which begin `stride` numbers apart.
HEARTH_AVX2_INLINE __m256d sumsOfFour(const float* source, int64_t stride, int64_t count) {
  __m256d a = _mm256_setzero_pd();
  __m256d b = a;
  __m256d c = a;
  __m256d d = a;
  int64_t at = 0;
  for (; at + kDoubles <= count; at += kDoubles) {
    a = _mm256_add_pd(a, widened(source + at));
    b = _mm256_add_pd(b, widened(source + stride + at));
    c = _mm256_add_pd(c, widened(source + 2 * stride + at));
    d = _mm256_add_pd(d, widened(source + 3 * stride + at));
  }
  if (at < count) {
    const __m128i mask = maskOf(count - at);
    a = _mm256_add_pd(a, widened(source + at, mask));
    b = _mm256_add_pd(b, widened(source + stride + at, mask));
    c = _mm256_add_pd(c, widened(source + 2 * stride + at, mask));
    d = _mm256_add_pd(d, widened(source + 3 * stride + at, mask));
  }
  const __m256d ab = _mm256_hadd_pd(a, b);
  const __m256d cd = _mm256_hadd_pd(c, d);
  return _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31));
}

// The sum of one row: its quarters are four rows.
HEARTH_AVX2 double sumOfRow(const float* source, int64_t count) {
  const int64_t quarter = count / 4;
  const __m256d sums = sumsOfFour(source, quarter, quarter);
  const __m128d halves = _mm_add_pd(_mm256_castpd256_pd128(sums), _mm256_extractf128_pd(sums, 1));
  double sum = _mm_cvtsd_f64(halves) + _mm_cvtsd_f64(_mm_unpackhi_pd(halves, halves));
  for (int64_t i = 4 * quarter; i < count; ++i) sum += static_cast<double>(source[i]);
  return sum;
}

HEARTH_AVX2 void addRowsByVectors(const float* source, int64_t rows, int64_t columns,
                                  double* sums) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    _mm256_storeu_pd(sums + row,
                     _mm256_add_pd(_mm256_loadu_pd(sums + row),
                                   sumsOfFour(source + row * columns, columns, columns)));
  for (; row < rows; ++row) sums[row] += sumOfRow(source + row * columns, columns);
}

// Adds `rows` rows that begin `stride` numbers apart to kVectors vectors of sums.
template <int kVectors>
HEARTH_AVX2_INLINE void addBlock(const float* source, int64_t rows, int64_t stride, double* sums) {
  __m256d values[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) values[v] = _mm256_loadu_pd(sums + v * kDoubles);
  for (int64_t row = 0; row < rows; ++row)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      values[v] = _mm256_add_pd(values[v], widened(source + row * stride + v * kDoubles));
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) _mm256_storeu_pd(sums + v * kDoubles, values[v]);
}

HEARTH_AVX2 void addColumnsByVectors(const float* source, int64_t rows, int64_t columns,
                                     double* sums) {
  constexpr int64_t kTogether = 16;  // so few that reading stays in the neighbourhood
  constexpr int kMost = 8;           // registers for sums
  for (int64_t row = 0; row < rows; row += kTogether) {
    const float* const first = source + row * columns;
    const int64_t count = std::min(kTogether, rows - row);
    int64_t at = 0;
    for (; at + kMost * kDoubles <= columns; at += kMost * kDoubles)
      addBlock<kMost>(first + at, count, columns, sums + at);
    for (; at + kDoubles <= columns; at += kDoubles)
      addBlock<1>(first + at, count, columns, sums + at);
    for (; at < columns; ++at)
      for (int64_t i = 0; i < count; ++i) sums[at] += static_cast<double>(first[i * columns + at]);
  }
}

}  // namespace

bool hasFloatSums() {
  static const bool isThere = __builtin_cpu_supports("avx2");
  return isThere;
}

bool addFloatRows(const float* source, int64_t rows, int64_t columns, double* sums) {
  if (!hasFloatSums()) return false;
  addRowsByVectors(source, rows, columns, sums);
  return true;
}

bool addFloatColumns(const float* source, int64_t rows, int64_t columns, double* sums) {
  if (!hasFloatSums()) return false;
  addColumnsByVectors(source, rows, columns, sums);
  return true;
}
#else
bool hasFloatSums() {
  return false;
}

bool addFloatRows(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                  double* /*sums*/) {
  return false;
}

bool addFloatColumns(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                     double* /*sums*/) {
  return false;
}
#endif

}  // namespace hearth::ops
