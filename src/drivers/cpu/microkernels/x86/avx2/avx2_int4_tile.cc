// SPDX-License-Identifier: Apache-2.0
#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/cpu/microkernels/portable/int4_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define HEARTH_INT4_AVX2 __attribute__((target("avx2,f16c,fma")))

namespace hearth::cpu {
namespace {

// More rows would need more registers than there are.
constexpr size_t kMostRows = 4;
constexpr size_t kVectors = 2;  // of 8 columns, in a panel
// Two products of a number from 0 to 15 and one from -128 to 127 are at least -3840, so eight pairs
// of them fit into 16 bits.
constexpr size_t kGroupsInWords = 4;

HEARTH_INT4_AVX2 inline __m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

enum class Form { kFloatScales, kHalfScales, kWholeSums };

template <Form kForm>
HEARTH_INT4_AVX2 inline __m256 scalesAt(const uint8_t* scales, size_t vector) {
  if constexpr (kForm == Form::kHalfScales)
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales) + vector));
  else
    return _mm256_loadu_ps(reinterpret_cast<const float*>(scales) + 8 * vector);
}

HEARTH_INT4_AVX2 inline __m256i fourBytesEverywhere(const uint8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, sizeof four);
  return _mm256_set1_epi32(four);
}

// Adds the products of up to kGroupsInWords groups of inputs.
template <size_t kRows>
HEARTH_INT4_AVX2 inline void addGroups(const uint8_t* rows, size_t stride, const uint8_t* weights,
                                       size_t groups, __m256i (&dots)[kRows][kVectors]) {
  const __m256i lowHalves = _mm256_set1_epi8(15);
  __m256i words[kRows][kVectors];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) words[r][0] = words[r][1] = _mm256_setzero_si256();
  for (size_t g = 0; g < groups; ++g) {
    __m256i first[kVectors];
    __m256i second[kVectors];
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256i both = load(weights + g * kInt4Line + v * sizeof(__m256i));
      first[v] = _mm256_and_si256(both, lowHalves);
      second[v] = _mm256_and_si256(_mm256_srli_epi16(both, 4), lowHalves);
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const uint8_t* const inputs = rows + r * stride + g * kInt4Group;
      const __m256i low = fourBytesEverywhere(inputs);
      const __m256i high = fourBytesEverywhere(inputs + 4);
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v)
        words[r][v] =
            _mm256_add_epi16(words[r][v], _mm256_add_epi16(_mm256_maddubs_epi16(first[v], low),
                                                           _mm256_maddubs_epi16(second[v], high)));
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v)
      dots[r][v] = _mm256_add_epi32(dots[r][v], _mm256_madd_epi16(words[r][v], ones));
}

// Writes the results of a row's columns: `values`, clamped.
HEARTH_INT4_AVX2 inline void write(const Qb4Gemm& product, const Int4Tile& tile, size_t row,
                                   const __m256 (&values)[kVectors]) {
  const __m256 lowest = _mm256_set1_ps(product.lowest);
  const __m256 highest = _mm256_set1_ps(product.highest);
  float* const output = tile.output + row * product.outputStride;
  float last[kInt4Columns];
  float* const to = tile.columns >= kInt4Columns ? output : last;
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v)
    // In this order a NaN stays a NaN.
    _mm256_storeu_ps(to + 8 * v, _mm256_min_ps(highest, _mm256_max_ps(lowest, values[v])));
  if (to == last) std::copy_n(last, tile.columns, output);
}

template <Form kForm, size_t kRows>
HEARTH_INT4_AVX2 void multiplyTile(const Qb4Gemm& product, const Int4Tile& tile) {
  constexpr size_t kScaleBytes = kForm == Form::kHalfScales ? sizeof(uint16_t) : sizeof(float);
  const size_t stride = int4RowBytes(product);
  const uint8_t* corrections = tile.rows + int4CorrectionsOffset(product);
  const auto* const head = reinterpret_cast<const float*>(tile.panel);
  __m256 sums[kRows][kVectors];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
  const uint8_t* rows = tile.rows;
  const uint8_t* weights = tile.panel + kInt4HeadBytes;
  const uint8_t* ahead = tile.ahead;
  const size_t groups = product.blockSize / kInt4Group;
  // Blocks are long where there is one only: then weights are fetched between its groups.
  const size_t steps = (groups + kGroupsInWords - 1) / kGroupsInWords;
  const size_t aheadStep = (tile.aheadStep + steps - 1) / steps;
  for (size_t b = product.blocks(); b > 0; --b) {
    const uint8_t* const scales = weights;
    weights += kInt4Columns * kScaleBytes;
    __m256i dots[kRows][kVectors];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r)
      dots[r][0] = dots[r][1] = fourBytesEverywhere(corrections + r * stride);
    corrections += sizeof(int32_t);
    for (size_t g = 0; g < groups; g += kGroupsInWords) {
      for (size_t fetched = 0; fetched < aheadStep; fetched += kInt4Line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + fetched), _MM_HINT_T1);
      ahead += aheadStep;
      const size_t count = std::min(kGroupsInWords, groups - g);
      addGroups<kRows>(rows, stride, weights, count, dots);
      rows += count * kInt4Group;
      weights += count * kInt4Line;
    }
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256 scale = scalesAt<kForm>(scales, v);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        if constexpr (kForm == Form::kWholeSums) {
          const __m256i weightSums = load(tile.panel + v * sizeof(__m256i));
          const __m256i zeroPoint = _mm256_set1_epi32(tile.parameters[r].zero_point);
          const __m256i exact =
              _mm256_sub_epi32(dots[r][v], _mm256_mullo_epi32(weightSums, zeroPoint));
          const __m256 scaled =
              _mm256_mul_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(tile.parameters[r].scale));
          sums[r][v] = _mm256_fmadd_ps(scaled, scale, _mm256_loadu_ps(head + kInt4Columns + 8 * v));
        } else {
          sums[r][v] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r][v]), scale, sums[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    if constexpr (kForm != Form::kWholeSums) {
      const __m256 zeroPoint = _mm256_set1_ps(static_cast<float>(tile.parameters[r].zero_point));
      const __m256 rowScale = _mm256_set1_ps(tile.parameters[r].scale);
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) {
        const __m256 sum = _mm256_fnmadd_ps(zeroPoint, _mm256_loadu_ps(head + 8 * v), sums[r][v]);
        sums[r][v] = _mm256_fmadd_ps(sum, rowScale, _mm256_loadu_ps(head + kInt4Columns + 8 * v));
      }
    }
    write(product, tile, r, sums[r]);
  }
}

template <Form kForm, size_t... kIndex>
constexpr Int4Tiles::Functions allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kForm, kIndex + 1>...};
}

}  // namespace

const Int4Tiles kAvx2Int4Tiles = {
    kMostRows, allTiles<Form::kFloatScales>(std::make_index_sequence<kMostRows>()),
    allTiles<Form::kHalfScales>(std::make_index_sequence<kMostRows>()),
    allTiles<Form::kWholeSums>(std::make_index_sequence<kMostRows>())};

}  // namespace hearth::cpu

#endif
