// SPDX-License-Identifier: Apache-2.0
#include "ops/float_folds.h"

#include <algorithm>
#include <limits>

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

// Lanes in which numbers are folded in float64.
struct Doubles {
  using Result = double;
  using Lanes = __m256d;
  static constexpr int64_t kCount = 4;

  HEARTH_AVX2_INLINE static Lanes all(float number) {
    return _mm256_set1_pd(static_cast<double>(number));
  }
  HEARTH_AVX2_INLINE static Lanes load(const float* source) {
    return _mm256_cvtps_pd(_mm_loadu_ps(source));
  }
  // The first `count` numbers, and `neutral` in the other lanes.
  HEARTH_AVX2_INLINE static Lanes load(const float* source, int64_t count, float neutral) {
    const __m128i mask =
        _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(count)), _mm_setr_epi32(0, 1, 2, 3));
    return _mm256_cvtps_pd(
        _mm_blendv_ps(_mm_set1_ps(neutral), _mm_maskload_ps(source, mask), _mm_castsi128_ps(mask)));
  }
  HEARTH_AVX2_INLINE static Lanes load(const double* results) { return _mm256_loadu_pd(results); }
  HEARTH_AVX2_INLINE static void store(Lanes lanes, double* results) {
    _mm256_storeu_pd(results, lanes);
  }

  // Merges the lanes of each of four vectors, and the result with the one that is there.
  template <typename Fold>
  HEARTH_AVX2_INLINE static void mergeLanes(Lanes a, Lanes b, Lanes c, Lanes d, double* results) {
    const Lanes ab = Fold::merge(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    const Lanes cd = Fold::merge(_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
    const Lanes merged =
        Fold::merge(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31));
    store(Fold::merge(load(results), merged), results);
  }
};

// The same in float32.
struct Floats {
  using Result = float;
  using Lanes = __m256;
  static constexpr int64_t kCount = 8;

  HEARTH_AVX2_INLINE static Lanes all(float number) { return _mm256_set1_ps(number); }
  HEARTH_AVX2_INLINE static Lanes load(const float* source) { return _mm256_loadu_ps(source); }
  HEARTH_AVX2_INLINE static Lanes load(const float* source, int64_t count, float neutral) {
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_blendv_ps(all(neutral), _mm256_maskload_ps(source, mask),
                            _mm256_castsi256_ps(mask));
  }

  template <typename Fold>
  HEARTH_AVX2_INLINE static void mergeLanes(Lanes a, Lanes b, Lanes c, Lanes d, float* results) {
    const __m256d ab =
        _mm256_castps_pd(Fold::merge(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));
    const __m256d cd =
        _mm256_castps_pd(Fold::merge(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)));
    const Lanes halves = Fold::merge(_mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
                                     _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)));
    const __m128 merged =
        Fold::merge(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
    _mm_storeu_ps(results, Fold::merge(_mm_loadu_ps(results), merged));
  }
};

struct Sum : Doubles {
  static constexpr float kNeutral = 0;
  HEARTH_AVX2_INLINE static Lanes merge(Lanes a, Lanes b) { return _mm256_add_pd(a, b); }
  static double merge(double a, double b) { return a + b; }
};

struct Product : Doubles {
  static constexpr float kNeutral = 1;
  HEARTH_AVX2_INLINE static Lanes merge(Lanes a, Lanes b) { return _mm256_mul_pd(a, b); }
  static double merge(double a, double b) { return a * b; }
};

// The instructions give the second operand where one is NaN: what was there before.
struct Greatest : Floats {
  static constexpr float kNeutral = -std::numeric_limits<float>::infinity();
  HEARTH_AVX2_INLINE static Lanes merge(Lanes a, Lanes b) { return _mm256_max_ps(b, a); }
  HEARTH_AVX2_INLINE static __m128 merge(__m128 a, __m128 b) { return _mm_max_ps(b, a); }
  static float merge(float a, float b) { return b > a ? b : a; }
};

struct Least : Floats {
  static constexpr float kNeutral = std::numeric_limits<float>::infinity();
  HEARTH_AVX2_INLINE static Lanes merge(Lanes a, Lanes b) { return _mm256_min_ps(b, a); }
  HEARTH_AVX2_INLINE static __m128 merge(__m128 a, __m128 b) { return _mm_min_ps(b, a); }
  static float merge(float a, float b) { return b < a ? b : a; }
};

// Folds four rows of `count` numbers, which begin `stride` numbers apart, into four results.
template <typename Fold>
HEARTH_AVX2_INLINE void foldFour(const float* source, int64_t stride, int64_t count,
                                 typename Fold::Result* results) {
  using Lanes = typename Fold::Lanes;
  Lanes a = Fold::all(Fold::kNeutral);
  Lanes b = a;
  Lanes c = a;
  Lanes d = a;
  int64_t at = 0;
  for (; at + Fold::kCount <= count; at += Fold::kCount) {
    a = Fold::merge(a, Fold::load(source + at));
    b = Fold::merge(b, Fold::load(source + stride + at));
    c = Fold::merge(c, Fold::load(source + 2 * stride + at));
    d = Fold::merge(d, Fold::load(source + 3 * stride + at));
  }
  if (const int64_t rest = count - at; rest > 0) {
    a = Fold::merge(a, Fold::load(source + at, rest, Fold::kNeutral));
    b = Fold::merge(b, Fold::load(source + stride + at, rest, Fold::kNeutral));
    c = Fold::merge(c, Fold::load(source + 2 * stride + at, rest, Fold::kNeutral));
    d = Fold::merge(d, Fold::load(source + 3 * stride + at, rest, Fold::kNeutral));
  }
  Fold::template mergeLanes<Fold>(a, b, c, d, results);
}

// Folds one row: its quarters are four rows.
template <typename Fold>
HEARTH_AVX2 typename Fold::Result foldOne(const float* source, int64_t count) {
  using Result = typename Fold::Result;
  constexpr auto kStart = static_cast<Result>(Fold::kNeutral);
  const int64_t quarter = count / 4;
  Result parts[4] = {kStart, kStart, kStart, kStart};
  foldFour<Fold>(source, quarter, quarter, parts);
  Result result = Fold::merge(Fold::merge(parts[0], parts[2]), Fold::merge(parts[1], parts[3]));
  for (int64_t i = 4 * quarter; i < count; ++i)
    result = Fold::merge(result, static_cast<Result>(source[i]));
  return result;
}

template <typename Fold>
HEARTH_AVX2 void foldRowsByVectors(const float* source, int64_t rows, int64_t columns,
                                   typename Fold::Result* results) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    foldFour<Fold>(source + row * columns, columns, columns, results + row);
  for (; row < rows; ++row)
    results[row] = Fold::merge(results[row], foldOne<Fold>(source + row * columns, columns));
}

// Folds `rows` rows that begin `stride` numbers apart into kVectors vectors of results. The rows
// are folded first: products of many numbers become denormal, and a processor takes long for each
// multiplication of such.
template <typename Fold, int kVectors>
HEARTH_AVX2_INLINE void foldBlock(const float* source, int64_t rows, int64_t stride,
                                  double* results) {
  typename Fold::Lanes values[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) values[v] = Fold::all(Fold::kNeutral);
  for (int64_t row = 0; row < rows; ++row)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      values[v] = Fold::merge(values[v], Fold::load(source + row * stride + v * Fold::kCount));
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    double* const to = results + v * Fold::kCount;
    Fold::store(Fold::merge(Fold::load(to), values[v]), to);
  }
}

template <typename Fold>
HEARTH_AVX2 void foldColumnsByVectors(const float* source, int64_t rows, int64_t columns,
                                      double* results) {
  constexpr int64_t kTogether = 16;  // so few that reading stays in the neighbourhood
  constexpr int kMost = 8;           // registers for results
  for (int64_t row = 0; row < rows; row += kTogether) {
    const float* const first = source + row * columns;
    const int64_t count = std::min(kTogether, rows - row);
    int64_t at = 0;
    for (; at + kMost * Fold::kCount <= columns; at += kMost * Fold::kCount)
      foldBlock<Fold, kMost>(first + at, count, columns, results + at);
    for (; at + Fold::kCount <= columns; at += Fold::kCount)
      foldBlock<Fold, 1>(first + at, count, columns, results + at);
    for (; at < columns; ++at)
      for (int64_t i = 0; i < count; ++i)
        results[at] = Fold::merge(results[at], static_cast<double>(first[i * columns + at]));
  }
}

template <typename Fold>
bool foldRows(const float* source, int64_t rows, int64_t columns, typename Fold::Result* results) {
  if (!hasFloatFolds()) return false;
  foldRowsByVectors<Fold>(source, rows, columns, results);
  return true;
}

template <typename Fold>
bool foldColumns(const float* source, int64_t rows, int64_t columns, double* results) {
  if (!hasFloatFolds()) return false;
  foldColumnsByVectors<Fold>(source, rows, columns, results);
  return true;
}

}  // namespace

bool hasFloatFolds() {
  static const bool isThere = __builtin_cpu_supports("avx2");
  return isThere;
}

bool addFloatRows(const float* source, int64_t rows, int64_t columns, double* sums) {
  return foldRows<Sum>(source, rows, columns, sums);
}

bool multiplyFloatRows(const float* source, int64_t rows, int64_t columns, double* products) {
  return foldRows<Product>(source, rows, columns, products);
}

bool raiseToFloatRows(const float* source, int64_t rows, int64_t columns, float* greatest) {
  return foldRows<Greatest>(source, rows, columns, greatest);
}

bool lowerToFloatRows(const float* source, int64_t rows, int64_t columns, float* least) {
  return foldRows<Least>(source, rows, columns, least);
}

bool addFloatColumns(const float* source, int64_t rows, int64_t columns, double* sums) {
  return foldColumns<Sum>(source, rows, columns, sums);
}

bool multiplyFloatColumns(const float* source, int64_t rows, int64_t columns, double* products) {
  return foldColumns<Product>(source, rows, columns, products);
}
#else
bool hasFloatFolds() {
  return false;
}

bool addFloatRows(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                  double* /*sums*/) {
  return false;
}

bool multiplyFloatRows(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                       double* /*products*/) {
  return false;
}

bool raiseToFloatRows(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                      float* /*greatest*/) {
  return false;
}

bool lowerToFloatRows(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                      float* /*least*/) {
  return false;
}

bool addFloatColumns(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                     double* /*sums*/) {
  return false;
}

bool multiplyFloatColumns(const float* /*source*/, int64_t /*rows*/, int64_t /*columns*/,
                          double* /*products*/) {
  return false;
}
#endif

}  // namespace hearth::ops
