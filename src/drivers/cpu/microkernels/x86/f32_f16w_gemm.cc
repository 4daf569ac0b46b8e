// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/f32_f16w_gemm.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {

void packHalves(const F16wGemm& product, const uint16_t* weights, const float* bias,
                uint8_t* packed) {
  // Channels that are transposed at a time, so that the destination stays in the first-level cache.
  constexpr size_t kTurned = 64;
  for (size_t panel = 0; panel < product.panels(); ++panel) {
    uint8_t* const at = packed + panel * product.panelBytes();
    const size_t first = panel * kHalfColumns;
    const size_t count = std::min(kHalfColumns, product.columns - first);
    float biases[kHalfColumns] = {};
    if (bias != nullptr) std::copy_n(bias + first, count, biases);
    std::memcpy(at, biases, sizeof biases);
    auto* const halves = reinterpret_cast<uint16_t*>(at + sizeof biases);
    if (count < kHalfColumns) std::fill_n(halves, product.channels * kHalfColumns, uint16_t{0});
    for (size_t begin = 0; begin < product.channels; begin += kTurned) {
      const size_t end = std::min(begin + kTurned, product.channels);
      for (size_t column = 0; column < count; ++column) {
        const uint16_t* const source = weights + (first + column) * product.channels;
        for (size_t c = begin; c < end; ++c) halves[c * kHalfColumns + column] = source[c];
      }
    }
  }
}

void makeHalfTile(const float* rows, size_t rowCount, size_t channels, float* tile) {
  // Channels that are transposed at a time.
  constexpr size_t kTurned = 64;
  for (size_t begin = 0; begin < channels; begin += kTurned) {
    const size_t end = std::min(begin + kTurned, channels);
    for (size_t r = 0; r < rowCount; ++r)
      for (size_t c = begin; c < end; ++c) tile[c * rowCount + r] = rows[r * channels + c];
  }
}

#if defined(__x86_64__)

#define HEARTH_F16C __attribute__((target("avx2,fma,f16c")))
#define HEARTH_512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")))

namespace {

struct Tile {
  const F16wGemm& product;
  const float* rows;  // of the first channel
  size_t firstChannel, lastChannel;
  const uint8_t* panel;  // the first of the panels that are multiplied together
  size_t columns;        // from the first one of that panel to the last one of all
  float* output;

  bool isFirst() const { return firstChannel == 0; }
  bool isLast() const { return lastChannel == product.channels; }
  const uint8_t* weights() const {
    return panel + kHalfColumns * (sizeof(float) + firstChannel * sizeof(uint16_t));
  }
};

// How many bytes ahead of their use weights are prefetched.
constexpr size_t kAhead = 1024;
constexpr size_t kStep = kHalfColumns * sizeof(uint16_t);

// Multiplies kRows rows by kPanels panels, of which the last may be partly padding. All loops over
// panels and rows are unrolled: the sums live in registers.
template <size_t kRows, size_t kPanels>
HEARTH_512 void multiply512(const Tile& tile) {
  const size_t panelBytes = tile.product.panelBytes();
  __mmask16 masks[kPanels];
#pragma GCC unroll 8
  for (size_t p = 0; p < kPanels; ++p) {
    const size_t left = tile.columns - std::min(tile.columns, p * kHalfColumns);
    masks[p] = static_cast<__mmask16>(left >= kHalfColumns ? 0xffff : (1u << left) - 1);
  }
  __m512 sums[kRows][kPanels];
#pragma GCC unroll 8
  for (size_t p = 0; p < kPanels; ++p) {
    const __m512 bias = _mm512_loadu_ps(tile.panel + p * panelBytes);
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r)
      sums[r][p] =
          tile.isFirst()
              ? bias
              : _mm512_maskz_loadu_ps(
                    masks[p], tile.output + r * tile.product.outputStride + p * kHalfColumns);
  }
  const uint8_t* weights = tile.weights();
  const float* rows = tile.rows + tile.firstChannel * kRows;
  for (size_t c = tile.firstChannel; c < tile.lastChannel; ++c, weights += kStep, rows += kRows) {
    __m512 factors[kPanels];
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
      const uint8_t* const at = weights + p * panelBytes;
      _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead, _MM_HINT_T0);
      factors[p] = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 input = _mm512_set1_ps(rows[r]);
#pragma GCC unroll 8
      for (size_t p = 0; p < kPanels; ++p)
        sums[r][p] = _mm512_fmadd_ps(input, factors[p], sums[r][p]);
    }
  }
  const __m512 lowest = _mm512_set1_ps(tile.product.lowest);
  const __m512 highest = _mm512_set1_ps(tile.product.highest);
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
      __m512 value = sums[r][p];
      // In this order a NaN stays a NaN.
      if (tile.isLast()) value = _mm512_min_ps(highest, _mm512_max_ps(lowest, value));
      _mm512_mask_storeu_ps(tile.output + r * tile.product.outputStride + p * kHalfColumns,
                            masks[p], value);
    }
  }
}

// The same with vectors of half a panel.
template <size_t kRows, size_t kPanels>
HEARTH_F16C void multiply256(const Tile& tile) {
  constexpr size_t kHalf = kHalfColumns / 2;
  constexpr size_t kHalves = 2 * kPanels;
  const size_t panelBytes = tile.product.panelBytes();
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i masks[kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const size_t left = std::min(kHalf, tile.columns - std::min(tile.columns, h * kHalf));
    masks[h] = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left)), lanes);
  }
  __m256 sums[kRows][kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const uint8_t* const biases = tile.panel + h / 2 * panelBytes + h % 2 * kHalf * sizeof(float);
    const __m256 bias = _mm256_loadu_ps(reinterpret_cast<const float*>(biases));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
      sums[r][h] = tile.isFirst()
                       ? bias
                       : _mm256_maskload_ps(tile.output + r * tile.product.outputStride + h * kHalf,
                                            masks[h]);
  }
  const uint8_t* weights = tile.weights();
  const float* rows = tile.rows + tile.firstChannel * kRows;
  for (size_t c = tile.firstChannel; c < tile.lastChannel; ++c, weights += kStep, rows += kRows) {
    __m256 factors[kHalves];
#pragma GCC unroll 8
    for (size_t h = 0; h < kHalves; ++h) {
      const uint8_t* const at = weights + h / 2 * panelBytes + h % 2 * kHalf * sizeof(uint16_t);
      if (h % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead, _MM_HINT_T0);
      factors[h] = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m256 input = _mm256_broadcast_ss(rows + r);
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h)
        sums[r][h] = _mm256_fmadd_ps(input, factors[h], sums[r][h]);
    }
  }
  const __m256 lowest = _mm256_set1_ps(tile.product.lowest);
  const __m256 highest = _mm256_set1_ps(tile.product.highest);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t h = 0; h < kHalves; ++h) {
      __m256 value = sums[r][h];
      if (tile.isLast()) value = _mm256_min_ps(highest, _mm256_max_ps(lowest, value));
      _mm256_maskstore_ps(tile.output + r * tile.product.outputStride + h * kHalf, masks[h], value);
    }
  }
}

bool hasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

constexpr size_t kRows512 = 12;
constexpr size_t kRows256 = 6;

// With few rows several panels are multiplied together, as many as registers allow, to hide the
// latency of the sums.
constexpr size_t panelsFor512(size_t rows) {
  return rows == 1 ? 8 : rows <= 6 ? 4 : rows <= 8 ? 3 : 2;
}
constexpr size_t panelsFor256(size_t rows) {
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}

template <size_t kRows, bool kIs512>
void multiplyPanels(const Tile& first, size_t panels) {
  constexpr size_t kTogether = kIs512 ? panelsFor512(kRows) : panelsFor256(kRows);
  const auto from = [&](size_t panel) {
    Tile tile = first;
    tile.panel += panel * first.product.panelBytes();
    tile.columns -= std::min(first.columns, panel * kHalfColumns);
    tile.output += panel * kHalfColumns;
    return tile;
  };
  size_t panel = 0;
  for (; panel + kTogether <= panels; panel += kTogether) {
    if constexpr (kIs512)
      multiply512<kRows, kTogether>(from(panel));
    else
      multiply256<kRows, kTogether>(from(panel));
  }
  for (; panel < panels; ++panel) {
    if constexpr (kIs512)
      multiply512<kRows, 1>(from(panel));
    else
      multiply256<kRows, 1>(from(panel));
  }
}

// Calls multiplyPanels() for this number of rows.
template <bool kIs512, size_t kRows = 1>
void multiplyRows(const Tile& tile, size_t rowCount, size_t panels) {
  if (rowCount == kRows) return multiplyPanels<kRows, kIs512>(tile, panels);
  if constexpr (kRows < (kIs512 ? kRows512 : kRows256))
    multiplyRows<kIs512, kRows + 1>(tile, rowCount, panels);
}

}  // namespace

bool hasHalfProduct() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

size_t halfTileRows() {
  return hasAvx512() ? kRows512 : kRows256;
}

void multiplyHalves(const F16wGemm& product, const float* tile, size_t rowCount,
                    size_t firstChannel, size_t lastChannel, size_t firstPanel, size_t lastPanel,
                    float* output) {
  const size_t column = firstPanel * kHalfColumns;
  const Tile first{product,
                   tile,
                   firstChannel,
                   lastChannel,
                   product.packed + firstPanel * product.panelBytes(),
                   product.columns - std::min(product.columns, column),
                   output + column};
  if (hasAvx512())
    multiplyRows<true>(first, rowCount, lastPanel - firstPanel);
  else
    multiplyRows<false>(first, rowCount, lastPanel - firstPanel);
}

#else

bool hasHalfProduct() {
  return false;
}
size_t halfTileRows() {
  return 1;
}
void multiplyHalves(const F16wGemm&, const float*, size_t, size_t, size_t, size_t, size_t, float*) {
}

#endif

}  // namespace hearth::cpu
