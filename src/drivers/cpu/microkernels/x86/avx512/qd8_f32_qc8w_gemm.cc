// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = kQd8Group;
constexpr size_t kLine = 64;
constexpr size_t kGroupBytes = kQd8Columns * kGroup;

size_t groupsOf(size_t inputs) {
  return (inputs + kGroup - 1) / kGroup;
}

}  // namespace

size_t Qd8Gemm::panelBytes() const {
  return 3 * kQd8Columns * sizeof(float) + groupsOf(inputs) * kGroupBytes;
}

size_t qd8RowBytes(size_t inputs) {
  // One cache line more than needed: rows of a power of two would share few sets of the cache.
  return (inputs + kLine - 1) / kLine * kLine + kLine;
}

void prepareQd8Row(const int8_t* numbers, size_t inputs, uint8_t* prepared) {
  for (size_t i = 0; i < inputs; ++i) prepared[i] = static_cast<uint8_t>(numbers[i]) ^ 0x80;
  std::memset(prepared + inputs, 0, qd8RowBytes(inputs) - inputs);
}

#if defined(__x86_64__)

namespace {

// How many bytes ahead of their use weights are prefetched where only one pass reads them: a page,
// so that its address is translated in time, too.
constexpr size_t kAhead = 4096;
// All tiles pass this many groups of inputs before the next ones, so that the weights stay in the
// first-level cache. Meanwhile the sums of kRowsTogether rows are kept in memory.
constexpr size_t kGroupsTogether = 256;
constexpr size_t kRowsTogether = 16 * kQd8Rows;

// The rows of one call, and a part of one panel's inputs.
struct Tile {
  const uint8_t* rows = nullptr;  // at the first input of all parts, as `panel`
  const struct xnn_quantization_params* parameters = nullptr;
  const uint8_t* panel = nullptr;
  size_t firstGroup = 0;
  size_t groups = 0;
  // Sums over the parts so far, [rows][2][16]: read unless the part is the first, written unless it
  // is the last.
  int32_t* sums = nullptr;
  // Weights to prefetch meanwhile, `aheadStep` bytes for each group of inputs.
  const uint8_t* ahead = nullptr;
  size_t aheadStep = 0;
  size_t columns = 0;
  float* output = nullptr;
};

template <size_t kRows>
HEARTH_VNNI_FUNCTION void multiplyTile(const Qd8Gemm& product, const Tile& tile) {
  // Pointers to every third row: an address can add the stride, or twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  const size_t stride = qd8RowBytes(product.inputs);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t)
    triples[t] = tile.rows + tile.firstGroup * kGroup + 3 * t * stride;
  // Few rows have few sums, each of which would wait for the one before it.
  constexpr size_t kTogether = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  __m512i low[kRows];
  __m512i high[kRows];
  if (tile.firstGroup == 0) {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) low[r] = high[r] = _mm512_setzero_si512();
  } else {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      low[r] = _mm512_loadu_si512(tile.sums + 2 * r * kQd8Columns);
      high[r] = _mm512_loadu_si512(tile.sums + (2 * r + 1) * kQd8Columns);
    }
  }
  const uint8_t* weights =
      tile.panel + kQd8Columns * sizeof(int32_t) + tile.firstGroup * kGroupBytes;
  const uint8_t* ahead = tile.ahead;
  const size_t aheadStep = tile.aheadStep;
  size_t left = tile.groups;
  if constexpr (kTogether > 1) {
    __m512i sums[kTogether][kRows][2];
#pragma GCC unroll 4
    for (size_t k = 0; k < kTogether; ++k)
#pragma GCC unroll 2
      for (size_t r = 0; r < kRows; ++r) sums[k][r][0] = sums[k][r][1] = _mm512_setzero_si512();
    for (; left >= kTogether; left -= kTogether) {
#pragma GCC unroll 4
      for (size_t k = 0; k < kTogether; ++k) {
        const __m512i first = _mm512_loadu_si512(weights + k * kGroupBytes);
        const __m512i second = _mm512_loadu_si512(weights + k * kGroupBytes + kLine);
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
        if constexpr (kRows == 1)
          _mm_prefetch(reinterpret_cast<const char*>(ahead + kLine), _MM_HINT_T0);
        ahead += aheadStep;
#pragma GCC unroll 2
        for (size_t r = 0; r < kRows; ++r) {
          int64_t eight;
          std::memcpy(&eight, triples[0] + r * stride + k * kGroup, sizeof eight);
          const __m512i inputs = _mm512_set1_epi64(eight);
          WholeVector::dot(sums[k][r][0], inputs, first);
          WholeVector::dot(sums[k][r][1], inputs, second);
        }
      }
      triples[0] += kTogether * kGroup;
      weights += kTogether * kGroupBytes;
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < kTogether; ++k)
#pragma GCC unroll 2
      for (size_t r = 0; r < kRows; ++r) {
        low[r] = _mm512_add_epi32(low[r], sums[k][r][0]);
        high[r] = _mm512_add_epi32(high[r], sums[k][r][1]);
      }
  }
  for (; left > 0; --left) {
    const __m512i first = _mm512_loadu_si512(weights);
    const __m512i second = _mm512_loadu_si512(weights + kLine);
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    if constexpr (kRows == 1)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + kLine), _MM_HINT_T1);
    ahead += aheadStep;
    weights += kGroupBytes;
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      int64_t eight;
      std::memcpy(&eight, triples[r / 3] + r % 3 * stride, sizeof eight);
      const __m512i inputs = _mm512_set1_epi64(eight);
      WholeVector::dot(low[r], inputs, first);
      WholeVector::dot(high[r], inputs, second);
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < kTriples; ++t) triples[t] += kGroup;
  }
  if (tile.firstGroup + tile.groups < groupsOf(product.inputs)) {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      _mm512_storeu_si512(tile.sums + 2 * r * kQd8Columns, low[r]);
      _mm512_storeu_si512(tile.sums + (2 * r + 1) * kQd8Columns, high[r]);
    }
    return;
  }
  const __m512i evens =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
  const __m512i weightSums = _mm512_loadu_si512(tile.panel);
  const __m512 scales = _mm512_loadu_ps(weights);
  const __m512 biases = _mm512_loadu_ps(weights + kLine);
  const __m512 lowest = _mm512_set1_ps(product.lowest);
  const __m512 highest = _mm512_set1_ps(product.highest);
  const __mmask16 mask =
      tile.columns >= kQd8Columns ? 0xffff : static_cast<__mmask16>((1u << tile.columns) - 1);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    // Two neighbouring lanes hold a column's sums over the first and the last four inputs of
    // groups.
    const __m512i both = _mm512_add_epi32(_mm512_permutex2var_epi32(low[r], evens, high[r]),
                                          _mm512_permutex2var_epi32(low[r], odds, high[r]));
    const __m512i zeroPoint = _mm512_set1_epi32(tile.parameters[r].zero_point + 128);
    const __m512i sum = _mm512_add_epi32(both, _mm512_mullo_epi32(weightSums, zeroPoint));
    const __m512 scaled =
        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(tile.parameters[r].scale));
    const __m512 value = _mm512_fmadd_ps(scaled, scales, biases);
    // In this order a NaN stays a NaN.
    _mm512_mask_storeu_ps(tile.output + r * product.outputStride, mask,
                          _mm512_min_ps(highest, _mm512_max_ps(lowest, value)));
  }
}

using TileFunction = void (*)(const Qd8Gemm&, const Tile&);

template <size_t... kIndex>
constexpr std::array<TileFunction, kQd8Rows> allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kIndex + 1>...};
}

// Multiplies rows by one panel; `output` is that of the first row and the panel's first column.
void multiplyPanel(const Qd8Gemm& product, const uint8_t* prepared,
                   const struct xnn_quantization_params* parameters, size_t rows, size_t panel,
                   float* output) {
  static constexpr std::array<TileFunction, kQd8Rows> kTiles =
      allTiles(std::make_index_sequence<kQd8Rows>());
  const size_t groups = groupsOf(product.inputs);
  const size_t tiles = (rows + kQd8Rows - 1) / kQd8Rows;
  // A single row reads each weight once, so one part has all inputs.
  const size_t groupsTogether = rows == 1 ? groups : kGroupsTogether;
  int32_t sums[kRowsTogether * 2 * kQd8Columns];
  Tile tile;
  tile.panel = product.packed + panel * product.panelBytes();
  tile.columns = product.columns - panel * kQd8Columns;
  for (size_t first = 0; first < groups; first += groupsTogether) {
    tile.firstGroup = first;
    tile.groups = std::min(groupsTogether, groups - first);
    // The next weights are prefetched while these are in use, a few with each tile: all at once
    // would fill the queues.
    const size_t bytes = tile.groups * kGroupBytes + kLine;
    tile.aheadStep = kGroupBytes;
    if (rows > 1)
      tile.aheadStep = std::min(kLine, (bytes + tiles * tile.groups - 1) / (tiles * tile.groups));
    for (size_t t = 0; t < tiles; ++t) {
      // Tiles have nearly equal numbers of rows.
      const size_t row = t * rows / tiles;
      const size_t count = (t + 1) * rows / tiles - row;
      tile.rows = prepared + row * qd8RowBytes(product.inputs);
      tile.parameters = parameters + row;
      tile.sums = sums + row * 2 * kQd8Columns;
      tile.ahead = tile.panel + first * kGroupBytes +
                   (rows == 1 ? kAhead : bytes + t * tile.groups * tile.aheadStep);
      tile.output = output + row * product.outputStride;
      kTiles[count - 1](product, tile);
    }
  }
}

}  // namespace

bool cpuHasQd8Gemm() {
  static const bool has = __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

void multiplyQd8(const Qd8Gemm& product, const uint8_t* prepared,
                 const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                 size_t lastPanel, float* output) {
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    for (size_t first = 0; first < rows; first += kRowsTogether) {
      const size_t count = std::min(kRowsTogether, rows - first);
      multiplyPanel(product, prepared + first * qd8RowBytes(product.inputs), parameters + first,
                    count, p, output + first * product.outputStride + p * kQd8Columns);
    }
  }
}

#else

bool cpuHasQd8Gemm() {
  return false;
}
void multiplyQd8(const Qd8Gemm&, const uint8_t*, const struct xnn_quantization_params*, size_t,
                 size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
