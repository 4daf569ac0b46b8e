// SPDX-License-Identifier: Apache-2.0
#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/cpu/microkernels/portable/int4_tile.h"

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"

#define HEARTH_INT4_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")))

namespace hearth::cpu {
namespace {

// Of one block, between prefetches.
constexpr size_t kGroupsOfStep = 4;

// Adds to each lane the four products of its unsigned bytes and the four signed bytes at `four`.
HEARTH_VNNI void dotWithEach(__m512i& sums, __m512i unsignedBytes, const uint8_t* four) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sums)
      : "v"(unsignedBytes), "m"(*reinterpret_cast<const int32_t(*)>(four)));
}

enum class Form { kFloatScales, kHalfScales, kWholeSums };

template <Form kForm>
HEARTH_INT4_VNNI __m512 scalesAt(const uint8_t* scales) {
  if constexpr (kForm == Form::kHalfScales)
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales)));
  else
    return _mm512_loadu_ps(scales);
}

template <Form kForm, size_t kRows>
HEARTH_INT4_VNNI void multiplyTile(const Qb4Gemm& product, const Int4Tile& tile) {
  // Pointers to every third row: an address can add the stride, or twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  // An instruction waits for the sum to which it adds. With few rows, both halves of a group have
  // sums of their own.
  constexpr size_t kSums = kRows <= 4 ? 2 : 1;
  constexpr size_t kScaleBytes = kForm == Form::kHalfScales ? sizeof(uint16_t) : sizeof(float);
  const size_t stride = int4RowBytes(product);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t) triples[t] = tile.rows + 3 * t * stride;
  const uint8_t* corrections = tile.rows + int4CorrectionsOffset(product);
  const __m512 biases = _mm512_loadu_ps(tile.panel + kInt4Line);
  __m512 sums[kRows];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  const __m512i lowHalves = _mm512_set1_epi8(15);
  const uint8_t* weights = tile.panel + kInt4HeadBytes;
  const uint8_t* ahead = tile.ahead;
  // Blocks are long where there is one only: then weights are fetched between its groups.
  const size_t groups = product.blockSize / kInt4Group;
  const size_t steps =
      kForm == Form::kWholeSums ? (groups + kGroupsOfStep - 1) / kGroupsOfStep : size_t{1};
  const size_t aheadStep = (tile.aheadStep + steps - 1) / steps;
  for (size_t b = product.blocks(); b > 0; --b) {
    __m512i dots[kRows][kSums];
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      int32_t correction;
      std::memcpy(&correction, corrections + r * stride, sizeof correction);
      dots[r][0] = _mm512_set1_epi32(correction);
      if constexpr (kSums == 2) dots[r][1] = _mm512_setzero_si512();
    }
    corrections += sizeof(int32_t);
    const __m512 scales = scalesAt<kForm>(weights);
    weights += kInt4Columns * kScaleBytes;
    for (size_t done = 0; done < groups;) {
      for (size_t fetched = 0; fetched < aheadStep; fetched += kInt4Line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + fetched), _MM_HINT_T1);
      ahead += aheadStep;
      const size_t end =
          kForm == Form::kWholeSums ? std::min(groups, done + kGroupsOfStep) : groups;
      for (; done < end; ++done) {
        const __m512i both = _mm512_loadu_si512(weights);
        weights += kInt4Line;
        const __m512i first = _mm512_and_si512(both, lowHalves);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi16(both, 4), lowHalves);
#pragma GCC unroll 12
        for (size_t r = 0; r < kRows; ++r)
          dotWithEach(dots[r][0], first, triples[r / 3] + r % 3 * stride);
#pragma GCC unroll 12
        for (size_t r = 0; r < kRows; ++r)
          dotWithEach(dots[r][kSums - 1], second, triples[r / 3] + r % 3 * stride + 4);
#pragma GCC unroll 4
        for (size_t t = 0; t < kTriples; ++t) triples[t] += kInt4Group;
      }
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      if constexpr (kSums == 2) dots[r][0] = _mm512_add_epi32(dots[r][0], dots[r][1]);
      if constexpr (kForm == Form::kWholeSums) {
        const __m512i zeroPoint = _mm512_set1_epi32(tile.parameters[r].zero_point);
        const __m512i exact = _mm512_sub_epi32(
            dots[r][0], _mm512_mullo_epi32(_mm512_loadu_si512(tile.panel), zeroPoint));
        const __m512 scaled =
            _mm512_mul_ps(_mm512_cvtepi32_ps(exact), _mm512_set1_ps(tile.parameters[r].scale));
        sums[r] = _mm512_fmadd_ps(scaled, scales, biases);
      } else {
        sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r][0]), scales, sums[r]);
      }
    }
  }
  const __m512 lowest = _mm512_set1_ps(product.lowest);
  const __m512 highest = _mm512_set1_ps(product.highest);
  const __mmask16 mask =
      tile.columns >= kInt4Columns ? 0xffff : static_cast<__mmask16>((1u << tile.columns) - 1);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    if constexpr (kForm != Form::kWholeSums) {
      const __m512 weightSums = _mm512_loadu_ps(tile.panel);
      const __m512 zeroPoint = _mm512_set1_ps(static_cast<float>(tile.parameters[r].zero_point));
      const __m512 sum = _mm512_fnmadd_ps(zeroPoint, weightSums, sums[r]);
      sums[r] = _mm512_fmadd_ps(sum, _mm512_set1_ps(tile.parameters[r].scale), biases);
    }
    // In this order a NaN stays a NaN.
    _mm512_mask_storeu_ps(tile.output + r * product.outputStride, mask,
                          _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[r])));
  }
}

template <Form kForm, size_t... kIndex>
constexpr Int4Tiles::Functions allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kForm, kIndex + 1>...};
}

}  // namespace

const Int4Tiles kVnniInt4Tiles = {
    kInt4Rows, allTiles<Form::kFloatScales>(std::make_index_sequence<kInt4Rows>()),
    allTiles<Form::kHalfScales>(std::make_index_sequence<kInt4Rows>()),
    allTiles<Form::kWholeSums>(std::make_index_sequence<kInt4Rows>())};

}  // namespace hearth::cpu

#endif
