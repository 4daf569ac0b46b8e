// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/f32_gemm.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

#define HEARTH_FMA __attribute__((target("avx2,fma")))
#define HEARTH_512 __attribute__((target("avx512f,fma")))

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr F32Tile kTile256{6, 16};
constexpr F32Tile kTile512{14, 32};
// How many bytes ahead of their use weights are prefetched.
constexpr size_t kAhead256 = 896;
constexpr size_t kAhead512 = 2048;

// Makes the compiler address rows by one index, in place of as many pointers that it advances.
inline void keepIndex(size_t* index) {
  asm("" : "+r"(*index));
}

// One call of an inner kernel.
struct Tile {
  const F32Gemm& product;
  const float* const* inputs;  // [taps][rowsOfTap]
  size_t rowsOfTap;
  size_t panelSize;
  const float* panel;  // the first of the panels that are multiplied together
  size_t columns;      // from the first one of that panel to the last one of all
  float* output;
  const float* addend;  // null, or in the place of the output
  F32Ahead ahead;
};

// Finishes and writes the sums of a tile; `columns` are those from its first one to the last one of
// all.
template <size_t kRows, size_t kHalves>
HEARTH_FMA inline __attribute__((always_inline)) void store256(const __m256 (&sums)[kRows][kHalves],
                                                               const F32Gemm& product,
                                                               size_t columns, float* output,
                                                               const float* addend) {
  constexpr size_t kHalf = kTile256.columns / 2;
  const __m256 lowest = _mm256_set1_ps(product.lowest);
  const __m256 highest = _mm256_set1_ps(product.highest);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const size_t stride = product.outputStride;
  // Most tiles are so, and take one branch in place of some for each row.
  if (columns >= kHalves * kHalf && product.slopes == nullptr && addend == nullptr) {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h)
        _mm256_storeu_ps(output + r * stride + h * kHalf,
                         _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[r][h])));
    return;
  }
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const size_t left = columns - std::min(columns, h * kHalf);
    const bool isWhole = left >= kHalf;
    const auto count = static_cast<int>(std::min(left, kHalf));
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes);
    __m256 slopes = _mm256_setzero_ps();
    if (product.slopes != nullptr)
      slopes = _mm256_maskload_ps(product.slopes + product.columns - columns + h * kHalf, mask);
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      __m256 sum = sums[r][h];
      if (addend != nullptr) {
        const float* const from = addend + r * stride + h * kHalf;
        sum = _mm256_add_ps(sum, isWhole ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask));
      }
      // In this order a NaN stays a NaN.
      __m256 value = _mm256_min_ps(highest, _mm256_max_ps(lowest, sum));
      if (product.slopes != nullptr) {
        const __m256 isNegative = _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_LT_OQ);
        value = _mm256_blendv_ps(value, _mm256_mul_ps(value, slopes), isNegative);
      }
      float* const at = output + r * stride + h * kHalf;
      if (isWhole)
        _mm256_storeu_ps(at, value);
      else
        _mm256_maskstore_ps(at, mask, value);
    }
  }
}

// Multiplies kRows rows by kHalves halves of panels, of which the last may be partly padding.
// kIsAhead: and fetches tile.ahead, which costs about one step of a hundred.
template <size_t kRows, size_t kHalves, bool kIsAhead>
HEARTH_FMA void multiply256(const Tile& tile) {
  constexpr size_t kHalf = kTile256.columns / 2;
  // All loops over halves and rows are unrolled: the sums live in registers.
  const auto halfOf = [&](const float* first, size_t h) {
    return first + h / 2 * tile.panelSize + h % 2 * kHalf;
  };
  __m256 sums[kRows][kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const __m256 bias = _mm256_loadu_ps(halfOf(tile.panel, h));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  const float* weights = tile.panel + kTile256.columns;
  const float* const* inputs = tile.inputs;
  [[maybe_unused]] const char* fetched = tile.ahead.first;
  const size_t channels = tile.product.channels;
  for (size_t tap = 0; tap < tile.product.taps; ++tap, inputs += tile.rowsOfTap) {
    const float* row[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) row[r] = inputs[r];
    for (size_t c = 0; c < channels; ++c, weights += kTile256.columns) {
      keepIndex(&c);
      if constexpr (kIsAhead) {
        _mm_prefetch(fetched, _MM_HINT_T1);
        fetched += tile.ahead.step;
      }
      // Panels follow one another, so the prefetched bytes are needed even at the end of a panel.
      _mm_prefetch(reinterpret_cast<const char*>(weights) + kAhead256, _MM_HINT_T0);
      __m256 factors[kHalves];
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h) factors[h] = _mm256_loadu_ps(halfOf(weights, h));
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m256 input = _mm256_broadcast_ss(row[r] + c);
#pragma GCC unroll 8
        for (size_t h = 0; h < kHalves; ++h)
          sums[r][h] = _mm256_fmadd_ps(input, factors[h], sums[r][h]);
      }
    }
  }
  store256(sums, tile.product, tile.columns, tile.output, tile.addend);
}

HEARTH_512 inline __mmask16 negatives512(__m512 values) {
  return _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_LT_OQ);
}

// The same with vectors of twice the size.
template <size_t kRows, size_t kHalves, bool kIsAhead>
HEARTH_512 void multiply512(const Tile& tile) {
  constexpr size_t kHalf = kTile512.columns / 2;
  const auto halfOf = [&](const float* first, size_t h) {
    return first + h / 2 * tile.panelSize + h % 2 * kHalf;
  };
  __m512 sums[kRows][kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const __m512 bias = _mm512_loadu_ps(halfOf(tile.panel, h));
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  const float* weights = tile.panel + kTile512.columns;
  const float* const* inputs = tile.inputs;
  [[maybe_unused]] const char* fetched = tile.ahead.first;
  const size_t channels = tile.product.channels;
  for (size_t tap = 0; tap < tile.product.taps; ++tap, inputs += tile.rowsOfTap) {
    const float* row[kRows];
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) row[r] = inputs[r];
    for (size_t c = 0; c < channels; ++c, weights += kTile512.columns) {
      keepIndex(&c);
      if constexpr (kIsAhead) {
        _mm_prefetch(fetched, _MM_HINT_T1);
        fetched += tile.ahead.step;
      }
      __m512 factors[kHalves];
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h) {
        const float* const at = halfOf(weights, h);
        _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead512, _MM_HINT_T0);
        factors[h] = _mm512_loadu_ps(at);
      }
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const __m512 input = _mm512_set1_ps(row[r][c]);
#pragma GCC unroll 8
        for (size_t h = 0; h < kHalves; ++h)
          sums[r][h] = _mm512_fmadd_ps(input, factors[h], sums[r][h]);
      }
    }
  }
  const __m512 lowest = _mm512_set1_ps(tile.product.lowest);
  const __m512 highest = _mm512_set1_ps(tile.product.highest);
  const size_t stride = tile.product.outputStride;
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const size_t left = tile.columns - std::min(tile.columns, h * kHalf);
    const auto mask = static_cast<__mmask16>(left >= kHalf ? 0xffff : (1u << left) - 1);
    __m512 slopes = _mm512_setzero_ps();
    if (tile.product.slopes != nullptr)
      slopes = _mm512_maskz_loadu_ps(
          mask, tile.product.slopes + tile.product.columns - tile.columns + h * kHalf);
    if (tile.addend != nullptr) {
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r)
        sums[r][h] = _mm512_add_ps(
            sums[r][h], _mm512_maskz_loadu_ps(mask, tile.addend + r * stride + h * kHalf));
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      float* const at = tile.output + r * stride + h * kHalf;
      __m512 value = _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[r][h]));
      if (tile.product.slopes != nullptr)
        value = _mm512_mask_mul_ps(value, negatives512(value), value, slopes);
      if (left >= kHalf)
        _mm512_storeu_ps(at, value);
      else
        _mm512_mask_storeu_ps(at, mask, value);
    }
  }
}

// Rows of a tile of whole panels, and of one of half a panel, whose rows lie evenly apart. With
// tiles of ten rows of AVX-512 the sums of one begin while those of the last one are still stored.
constexpr size_t kEvenRows512 = 10;
constexpr size_t kEvenRowsOfHalf512 = 28;
constexpr size_t kEvenRows256 = 6;
constexpr size_t kEvenRowsOfHalf256 = 12;

// Multiplies kRows rows from `first` on by kHalves halves of the panel at `weights`, of which the
// last may be partly padding; `columns` are those from the first one of the panel to the last one
// of all. Five rows are addressed by one pointer, so that all pointers stay in registers.
template <size_t kRows, size_t kHalves>
HEARTH_512 void multiplyEven512(const F32Gemm& product, const F32EvenRows& rows, size_t first,
                                const float* weights, size_t columns, float* output,
                                const float* addend) {
  constexpr size_t kHalf = kTile512.columns / 2;
  constexpr size_t kRowsOfPointer = 5;
  constexpr size_t kPointers = (kRows + kRowsOfPointer - 1) / kRowsOfPointer;
  __m512 sums[kRows][kHalves];
#pragma GCC unroll 2
  for (size_t h = 0; h < kHalves; ++h) {
    const __m512 bias = _mm512_loadu_ps(weights + h * kHalf);
#pragma GCC unroll 28
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  weights += kTile512.columns;
  const size_t step = rows.step * sizeof(float);
  size_t threeSteps = 3 * step;
  keepIndex(&threeSteps);
  for (size_t tap = 0; tap < product.taps; ++tap) {
    const char* at[kPointers];
#pragma GCC unroll 6
    for (size_t p = 0; p < kPointers; ++p)
      at[p] = reinterpret_cast<const char*>(rows.taps[tap]) + (first + p * kRowsOfPointer) * step;
    for (size_t c = 0; c < product.channels; ++c, weights += kTile512.columns) {
      __m512 factors[kHalves];
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) factors[h] = _mm512_loadu_ps(weights + h * kHalf);
#pragma GCC unroll 28
      for (size_t r = 0; r < kRows; ++r) {
        // An address has room for a factor of 1, 2, 4 or 8.
        const size_t place = r % kRowsOfPointer;
        const char* const from = at[r / kRowsOfPointer] + (place == 3 ? threeSteps : place * step);
        const __m512 input = _mm512_set1_ps(*reinterpret_cast<const float*>(from));
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h)
          sums[r][h] = _mm512_fmadd_ps(input, factors[h], sums[r][h]);
      }
#pragma GCC unroll 6
      for (size_t p = 0; p < kPointers; ++p) {
        at[p] += sizeof(float);
        // Otherwise the compiler makes a pointer for each row.
        asm("" : "+r"(at[p]));
      }
    }
  }
  const __m512 lowest = _mm512_set1_ps(product.lowest);
  const __m512 highest = _mm512_set1_ps(product.highest);
  const size_t stride = product.outputStride;
#pragma GCC unroll 2
  for (size_t h = 0; h < kHalves; ++h) {
    const size_t left = columns - std::min(columns, h * kHalf);
    const auto mask = static_cast<__mmask16>(left >= kHalf ? 0xffff : (1u << left) - 1);
    __m512 slopes = _mm512_setzero_ps();
    if (product.slopes != nullptr)
      slopes = _mm512_maskz_loadu_ps(mask, product.slopes + product.columns - columns + h * kHalf);
    if (addend != nullptr) {
#pragma GCC unroll 28
      for (size_t r = 0; r < kRows; ++r)
        sums[r][h] =
            _mm512_add_ps(sums[r][h], _mm512_maskz_loadu_ps(mask, addend + r * stride + h * kHalf));
    }
#pragma GCC unroll 28
    for (size_t r = 0; r < kRows; ++r) {
      float* const to = output + r * stride + h * kHalf;
      __m512 value = _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[r][h]));
      if (product.slopes != nullptr)
        value = _mm512_mask_mul_ps(value, negatives512(value), value, slopes);
      if (left >= kHalf)
        _mm512_storeu_ps(to, value);
      else
        _mm512_mask_storeu_ps(to, mask, value);
    }
  }
}

// The same with vectors of half the size. Three rows are addressed by one pointer.
template <size_t kRows, size_t kHalves>
HEARTH_FMA void multiplyEven256(const F32Gemm& product, const F32EvenRows& rows, size_t first,
                                const float* weights, size_t columns, float* output,
                                const float* addend) {
  constexpr size_t kHalf = kTile256.columns / 2;
  constexpr size_t kRowsOfPointer = 3;
  constexpr size_t kPointers = kRows / kRowsOfPointer;
  static_assert(kRows % kRowsOfPointer == 0);
  __m256 sums[kRows][kHalves];
#pragma GCC unroll 2
  for (size_t h = 0; h < kHalves; ++h) {
    const __m256 bias = _mm256_loadu_ps(weights + h * kHalf);
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  weights += kTile256.columns;
  const size_t step = rows.step * sizeof(float);
  for (size_t tap = 0; tap < product.taps; ++tap) {
    const char* at[kPointers];
#pragma GCC unroll 4
    for (size_t p = 0; p < kPointers; ++p)
      at[p] = reinterpret_cast<const char*>(rows.taps[tap]) + (first + p * kRowsOfPointer) * step;
    // A counter would lie in memory.
    const char* const end = at[0] + product.channels * sizeof(float);
    for (; at[0] != end; weights += kTile256.columns) {
      __m256 factors[kHalves];
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) factors[h] = _mm256_loadu_ps(weights + h * kHalf);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r) {
        const char* const from = at[r / kRowsOfPointer] + r % kRowsOfPointer * step;
        const __m256 input = _mm256_broadcast_ss(reinterpret_cast<const float*>(from));
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h)
          sums[r][h] = _mm256_fmadd_ps(input, factors[h], sums[r][h]);
      }
#pragma GCC unroll 4
      for (size_t p = 0; p < kPointers; ++p) {
        at[p] += sizeof(float);
        // Otherwise the compiler makes a pointer for each row.
        asm("" : "+r"(at[p]));
      }
    }
  }
  store256(sums, product, columns, output, addend);
}

// Multiplies as many rows as whole tiles have by panels [firstPanel, lastPanel). Returns their
// number.
template <bool kIs512, size_t kRows, size_t kHalves>
size_t multiplyEvenTiles(const F32Gemm& product, const F32EvenRows& rows, size_t firstPanel,
                         size_t lastPanel, float* output, const float* addend) {
  if (firstPanel == lastPanel) return rows.count;
  size_t row = 0;
  for (; row + kRows <= rows.count; row += kRows)
    for (size_t panel = firstPanel; panel < lastPanel; ++panel) {
      const size_t column = panel * (kIs512 ? kTile512 : kTile256).columns;
      const size_t offset = row * product.outputStride + column;
      const float* const weights = product.packed + panel * product.panelSize();
      const float* const added = addend == nullptr ? nullptr : addend + offset;
      if constexpr (kIs512)
        multiplyEven512<kRows, kHalves>(product, rows, row, weights, product.columns - column,
                                        output + offset, added);
      else
        multiplyEven256<kRows, kHalves>(product, rows, row, weights, product.columns - column,
                                        output + offset, added);
    }
  return row;
}

// With few rows several panels are multiplied together, as many as registers allow, to hide the
// latency of the sums.
constexpr size_t panelsFor256(size_t rows) {
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}
constexpr size_t panelsFor512(size_t rows) {
  return rows <= 2 ? 4 : rows <= 6 ? 2 : 1;
}

template <bool kIs512, size_t kRows, size_t kHalves>
void multiplyHalves(const Tile& tile) {
  if constexpr (kIs512)
    tile.ahead.first != nullptr ? multiply512<kRows, kHalves, true>(tile)
                                : multiply512<kRows, kHalves, false>(tile);
  else
    tile.ahead.first != nullptr ? multiply256<kRows, kHalves, true>(tile)
                                : multiply256<kRows, kHalves, false>(tile);
}

template <bool kIs512, size_t kRows>
void multiplyPanels(const F32Gemm& product, const float* const* inputs, size_t firstPanel,
                    size_t lastPanel, float* output, const float* addend, const F32Ahead& ahead) {
  constexpr size_t kColumns = kIs512 ? kTile512.columns : kTile256.columns;
  constexpr size_t kTogether = kIs512 ? panelsFor512(kRows) : panelsFor256(kRows);
  const size_t panelSize = product.panelSize();
  const auto from = [&](size_t panel) {
    const size_t column = panel * kColumns;
    F32Ahead rest = ahead;
    if (rest.first != nullptr)
      rest.first += (panel - firstPanel) * product.fetchesPerPanel() * rest.step;
    return Tile{product,
                inputs,
                kRows,
                panelSize,
                product.packed + panel * panelSize,
                product.columns - column,
                output + column,
                addend == nullptr ? nullptr : addend + column,
                rest};
  };
  size_t panel = firstPanel;
  for (; panel + kTogether <= lastPanel; panel += kTogether) {
    // The last half may be all padding.
    if (kTogether == 1 && product.columns - panel * kColumns <= kColumns / 2) break;
    multiplyHalves<kIs512, kRows, 2 * kTogether>(from(panel));
  }
  if constexpr (kTogether == 4) {
    if (panel + 2 <= lastPanel) {
      multiplyHalves<kIs512, kRows, 4>(from(panel));
      panel += 2;
    }
  }
  for (; panel < lastPanel; ++panel) {
    if (product.columns - panel * kColumns <= kColumns / 2)
      multiplyHalves<kIs512, kRows, 1>(from(panel));
    else
      multiplyHalves<kIs512, kRows, 2>(from(panel));
  }
}

// Calls multiplyPanels() for this number of rows.
template <bool kIs512, size_t kRows = 1>
void multiplyRows(const F32Gemm& product, const float* const* inputs, size_t rows,
                  size_t firstPanel, size_t lastPanel, float* output, const float* addend,
                  const F32Ahead& ahead) {
  if (rows == kRows)
    return multiplyPanels<kIs512, kRows>(product, inputs, firstPanel, lastPanel, output, addend,
                                         ahead);
  if constexpr (kRows < (kIs512 ? kTile512.rows : kTile256.rows))
    multiplyRows<kIs512, kRows + 1>(product, inputs, rows, firstPanel, lastPanel, output, addend,
                                    ahead);
}

bool hasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

}  // namespace

const F32Tile& f32Tile() {
  static const F32Tile& tile = hasAvx512() ? kTile512 : kTile256;
  return tile;
}

bool cpuHasF32Gemm() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

void multiplyF32(const F32Gemm& product, const float* const* inputs, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output, const float* addend, const F32Ahead& ahead) {
  if (hasAvx512())
    multiplyRows<true>(product, inputs, rows, firstPanel, lastPanel, output, addend, ahead);
  else
    multiplyRows<false>(product, inputs, rows, firstPanel, lastPanel, output, addend, ahead);
}

void multiplyEvenF32(const F32Gemm& product, const F32EvenRows& rows, const float** scratch,
                     float* output, const float* addend) {
  // Multiplies the rows from `row` on in tiles that have pointers.
  const auto multiplyRest = [&](size_t row, size_t firstPanel, size_t lastPanel) {
    const size_t tiles = (rows.count - row + f32Tile().rows - 1) / f32Tile().rows;
    for (size_t t = 0; t < tiles; ++t) {
      const size_t count = (rows.count - row) / (tiles - t);
      for (size_t tap = 0; tap < product.taps; ++tap)
        for (size_t r = 0; r < count; ++r)
          scratch[tap * count + r] = rows.taps[tap] + (row + r) * rows.step;
      const size_t offset = row * product.outputStride;
      multiplyF32(product, scratch, count, firstPanel, lastPanel, output + offset,
                  addend == nullptr ? nullptr : addend + offset);
      row += count;
    }
  };
  const size_t panels = product.panels();
  const size_t columns = f32Tile().columns;
  const bool isHalf = product.columns - (panels - 1) * columns <= columns / 2;
  const size_t whole = isHalf ? panels - 1 : panels;
  if (hasAvx512()) {
    multiplyRest(multiplyEvenTiles<true, kEvenRows512, 2>(product, rows, 0, whole, output, addend),
                 0, whole);
    multiplyRest(multiplyEvenTiles<true, kEvenRowsOfHalf512, 1>(product, rows, whole, panels,
                                                                output, addend),
                 whole, panels);
  } else {
    multiplyRest(multiplyEvenTiles<false, kEvenRows256, 2>(product, rows, 0, whole, output, addend),
                 0, whole);
    multiplyRest(multiplyEvenTiles<false, kEvenRowsOfHalf256, 1>(product, rows, whole, panels,
                                                                 output, addend),
                 whole, panels);
  }
}

#else

const F32Tile& f32Tile() {
  static constexpr F32Tile kTile;
  return kTile;
}
bool cpuHasF32Gemm() {
  return false;
}
void multiplyF32(const F32Gemm&, const float* const*, size_t, size_t, size_t, float*, const float*,
                 const F32Ahead&) {}
void multiplyEvenF32(const F32Gemm&, const F32EvenRows&, const float**, float*, const float*) {}

#endif

}  // namespace hearth::cpu
