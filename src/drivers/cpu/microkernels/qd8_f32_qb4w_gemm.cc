// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/qd8_f32_qb4w_gemm.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/half.h"
#include "ops/int4.h"

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/vnni_vectors.h"

#define HEARTH_INT4_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")))
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = 8;  // inputs that lie together
constexpr size_t kLine = 64;
constexpr size_t kHeadBytes = 2 * kInt4Columns * sizeof(float);
// With more inputs in a block its sums would exceed 32 bits.
constexpr size_t kMostInBlock = size_t{1} << 16;

size_t sumsOffset(const Qb4Gemm& product) {
  return (product.inputs + kLine - 1) / kLine * kLine;
}

float scaleAt(const Qb4Gemm& product, const void* scales, size_t index) {
  return product.areScalesHalf ? static_cast<float>(static_cast<const ops::Half*>(scales)[index])
                               : static_cast<const float*>(scales)[index];
}

// Packs eight numbers of a column, the first in the lowest bits, as a group of the product.
uint32_t packedGroup(uint32_t numbers) {
  // Adds 8: numbers become 0 to 15.
  const uint32_t raised = numbers ^ 0x88888888;
  // Two bytes with two numbers each become four bytes with one.
  const auto spread = [](uint32_t four) {
    const uint32_t pairs = (four | four << 8) & 0x00ff00ff;
    return (pairs | pairs << 4) & 0x0f0f0f0f;
  };
  return spread(raised & 0xffff) | spread(raised >> 16) << 4;
}

int32_t sumOf(const uint8_t* pairs, size_t bytes) {
  // Adds numbers that are 8 too large, two for each byte.
  int32_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += ((pairs[i] & 15) ^ 8) + ((pairs[i] >> 4) ^ 8);
  return sum - static_cast<int32_t>(16 * bytes);
}

}  // namespace

void packInt4(const Qb4Gemm& product, const uint8_t* weights, const void* scales, const float* bias,
              uint8_t* packed) {
  const size_t blocks = product.blocks();
  const size_t blockPairs = product.blockSize / 2;
  std::memset(packed, 0, product.panels() * product.panelBytes());
  for (size_t column = 0; column < product.columns; ++column) {
    const size_t lane = column % kInt4Columns;
    uint8_t* const panel = packed + column / kInt4Columns * product.panelBytes();
    double sum = 0.0;
    for (size_t b = 0; b < blocks; ++b) {
      const uint8_t* const pairs = weights + (column * blocks + b) * blockPairs;
      uint8_t* const block = panel + kHeadBytes + b * product.blockBytes();
      const size_t scaleBytes = product.scaleBytes();
      std::memcpy(block + lane * scaleBytes,
                  static_cast<const uint8_t*>(scales) + (column * blocks + b) * scaleBytes,
                  scaleBytes);
      uint8_t* const groups = block + kInt4Columns * scaleBytes + lane * kGroup / 2;
      for (size_t g = 0; g < product.blockSize / kGroup; ++g) {
        uint32_t numbers;
        std::memcpy(&numbers, pairs + g * sizeof numbers, sizeof numbers);
        numbers = packedGroup(numbers);
        std::memcpy(groups + g * kLine, &numbers, sizeof numbers);
      }
      sum += static_cast<double>(scaleAt(product, scales, column * blocks + b)) *
             sumOf(pairs, blockPairs);
    }
    const float real = static_cast<float>(sum);
    std::memcpy(panel + lane * sizeof(float), &real, sizeof real);
    if (bias != nullptr)
      std::memcpy(panel + (kInt4Columns + lane) * sizeof(float), bias + column, sizeof(float));
  }
}

size_t int4RowBytes(const Qb4Gemm& product) {
  // One cache line more than needed: rows of a power of two would share few sets of the cache.
  const size_t bytes = sumsOffset(product) + product.blocks() * sizeof(int32_t);
  return (bytes + kLine - 1) / kLine * kLine + kLine;
}

void prepareInt4Row(const Qb4Gemm& product, const int8_t* numbers, uint8_t* prepared) {
  std::memcpy(prepared, numbers, product.inputs);
  auto* const sums = reinterpret_cast<int32_t*>(prepared + sumsOffset(product));
  for (size_t b = 0; b < product.blocks(); ++b) {
    int32_t sum = 0;
    for (size_t i = 0; i < product.blockSize; ++i) sum += numbers[b * product.blockSize + i];
    sums[b] = -8 * sum;
  }
}

#if defined(__x86_64__)

namespace {

// How many bytes ahead of their use weights are prefetched where only one pass reads them: a page,
// so that its address is translated in time, too.
constexpr size_t kAhead = 4096;

// The rows of one call, and one panel.
struct Tile {
  const uint8_t* rows = nullptr;
  const struct xnn_quantization_params* parameters = nullptr;
  const uint8_t* panel = nullptr;
  // Weights to prefetch meanwhile, `aheadStep` bytes for each block.
  const uint8_t* ahead = nullptr;
  size_t aheadStep = 0;
  size_t columns = 0;
  float* output = nullptr;
};

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
HEARTH_INT4_VNNI void multiplyTile(const Qb4Gemm& product, const Tile& tile) {
  // Pointers to every third row: an address can add the stride, or twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  const size_t stride = int4RowBytes(product);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t) triples[t] = tile.rows + 3 * t * stride;
  const uint8_t* corrections = tile.rows + sumsOffset(product);
  __m512 sums[kRows];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  const __m512i lowHalves = _mm512_set1_epi8(15);
  const uint8_t* weights = tile.panel + kHeadBytes;
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
    for (size_t fetched = 0; fetched < tile.aheadStep; fetched += kLine)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + fetched), _MM_HINT_T1);
    ahead += tile.aheadStep;
    const __m512 scales = scalesAt<kHalf>(weights);
    weights += kInt4Columns * (kHalf ? sizeof(uint16_t) : sizeof(float));
    for (size_t g = product.blockSize / kGroup; g > 0; --g) {
      const __m512i both = _mm512_loadu_si512(weights);
      weights += kLine;
      const __m512i first = _mm512_and_si512(both, lowHalves);
      const __m512i second = _mm512_and_si512(_mm512_srli_epi16(both, 4), lowHalves);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r)
        dotWithEach(dots[r], first, triples[r / 3] + r % 3 * stride);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r)
        dotWithEach(dots[r], second, triples[r / 3] + r % 3 * stride + 4);
#pragma GCC unroll 4
      for (size_t t = 0; t < kTriples; ++t) triples[t] += kGroup;
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r)
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]), scales, sums[r]);
  }
  const __m512 weightSums = _mm512_loadu_ps(tile.panel);
  const __m512 biases = _mm512_loadu_ps(tile.panel + kLine);
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

using TileFunction = void (*)(const Qb4Gemm&, const Tile&);

template <bool kHalf, size_t... kIndex>
constexpr std::array<TileFunction, kInt4Rows> allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kHalf, kIndex + 1>...};
}

}  // namespace

bool hasInt4Product(size_t inputs, size_t blockSize) {
  static const bool has = __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c");
  return has && blockSize != 0 && blockSize % kGroup == 0 && blockSize <= kMostInBlock &&
         inputs % blockSize == 0;
}

void multiplyInt4(const Qb4Gemm& product, const uint8_t* prepared,
                  const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                  size_t lastPanel, float* output) {
  static constexpr auto kRowIndices = std::make_index_sequence<kInt4Rows>();
  static constexpr std::array<TileFunction, kInt4Rows> kTiles[] = {allTiles<false>(kRowIndices),
                                                                   allTiles<true>(kRowIndices)};
  const size_t tiles = (rows + kInt4Rows - 1) / kInt4Rows;
  const size_t panelBytes = product.panelBytes();
  Tile tile;
  // The next weights are prefetched while these are in use, a few with each tile: all at once would
  // fill the queues.
  tile.aheadStep = rows == 1 ? product.blockBytes()
                             : (panelBytes / tiles + product.blocks() - 1) / product.blocks();
  for (size_t panel = firstPanel; panel < lastPanel; ++panel) {
    tile.panel = product.packed + panel * panelBytes;
    tile.columns = product.columns - panel * kInt4Columns;
    for (size_t t = 0; t < tiles; ++t) {
      // Tiles have nearly equal numbers of rows.
      const size_t row = t * rows / tiles;
      const size_t count = (t + 1) * rows / tiles - row;
      tile.rows = prepared + row * int4RowBytes(product);
      tile.parameters = parameters + row;
      tile.ahead = tile.panel + (rows == 1 ? kAhead : panelBytes + t * panelBytes / tiles);
      tile.output = output + row * product.outputStride + panel * kInt4Columns;
      kTiles[product.areScalesHalf ? 1 : 0][count - 1](product, tile);
    }
  }
}

#else

bool hasInt4Product(size_t, size_t) {
  return false;
}
void multiplyInt4(const Qb4Gemm&, const uint8_t*, const struct xnn_quantization_params*, size_t,
                  size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
