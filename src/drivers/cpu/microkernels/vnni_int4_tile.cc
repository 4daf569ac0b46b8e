// SPDX-License-Identifier: Apache-2.0
#include <hearth_xnnpack.h>

#include <cstring>
#include <utility>

#include "drivers/cpu/microkernels/int4_tile.h"

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/vnni_vectors.h"

#define HEARTH_INT4_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")))

namespace hearth::cpu {
namespace {

// Adds to each lane the four products of its unsigned bytes and the four signed bytes at `four`.
HEARTH_VNNI void dotWithEach(__m512i& sums, __m512i unsignedBytes, const uint8_t* four) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sums)
      : "v"(unsignedBytes), "m"(*reinterpret_cast<const int32_t(*)>(four)));
}

template <bool kHalf>
HEARTH_INT4_VNNI __m512 scalesAt(const uint8_t* scales) {
  if constexpr (kHalf)
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales)));
  else
    return _mm512_loadu_ps(scales);
}

template <bool kHalf, size_t kRows>
HEARTH_INT4_VNNI void multiplyTile(const Qb4Gemm& product, const Int4Tile& tile) {
  // Pointers to every third row: an address can add the stride, or twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  const size_t stride = int4RowBytes(product);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t) triples[t] = tile.rows + 3 * t * stride;
  const uint8_t* corrections = tile.rows + int4CorrectionsOffset(product);
  __m512 sums[kRows];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  const __m512i lowHalves = _mm512_set1_epi8(15);
  const uint8_t* weights = tile.panel + kInt4HeadBytes;
  const uint8_t* ahead = tile.ahead;
  for (size_t b = product.blocks(); b > 0; --b) {
    __m512i dots[kRows];
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      int32_t correction;
      std::memcpy(&correction, corrections + r * stride, sizeof correction);
      dots[r] = _mm512_set1_epi32(correction);
    }
    corrections += sizeof(int32_t);
    for (size_t fetched = 0; fetched < tile.aheadStep; fetched += kInt4Line)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + fetched), _MM_HINT_T1);
    ahead += tile.aheadStep;
    const __m512 scales = scalesAt<kHalf>(weights);
    weights += kInt4Columns * (kHalf ? sizeof(uint16_t) : sizeof(float));
    for (size_t g = product.blockSize / kInt4Group; g > 0; --g) {
      const __m512i both = _mm512_loadu_si512(weights);
      weights += kInt4Line;
      const __m512i first = _mm512_and_si512(both, lowHalves);
      const __m512i second = _mm512_and_si512(_mm512_srli_epi16(both, 4), lowHalves);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r)
        dotWithEach(dots[r], first, triples[r / 3] + r % 3 * stride);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r)
        dotWithEach(dots[r], second, triples[r / 3] + r % 3 * stride + 4);
#pragma GCC unroll 4
      for (size_t t = 0; t < kTriples; ++t) triples[t] += kInt4Group;
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r)
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]), scales, sums[r]);
  }
  const __m512 weightSums = _mm512_loadu_ps(tile.panel);
  const __m512 biases = _mm512_loadu_ps(tile.panel + kInt4Line);
  const __m512 lowest = _mm512_set1_ps(product.lowest);
  const __m512 highest = _mm512_set1_ps(product.highest);
  const __mmask16 mask =
      tile.columns >= kInt4Columns ? 0xffff : static_cast<__mmask16>((1u << tile.columns) - 1);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    const __m512 zeroPoint = _mm512_set1_ps(static_cast<float>(tile.parameters[r].zero_point));
    const __m512 sum = _mm512_fnmadd_ps(zeroPoint, weightSums, sums[r]);
    const __m512 value = _mm512_fmadd_ps(sum, _mm512_set1_ps(tile.parameters[r].scale), biases);
    // In this order a NaN stays a NaN.
    _mm512_mask_storeu_ps(tile.output + r * product.outputStride, mask,
                          _mm512_min_ps(highest, _mm512_max_ps(lowest, value)));
  }
}

template <bool kHalf, size_t... kIndex>
constexpr Int4Tiles::Functions allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kHalf, kIndex + 1>...};
}

}  // namespace

const Int4Tiles kVnniInt4Tiles = {kInt4Rows,
                                  allTiles<false>(std::make_index_sequence<kInt4Rows>()),
                                  allTiles<true>(std::make_index_sequence<kInt4Rows>()),
                                  {}};

}  // namespace hearth::cpu

#endif
