// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/hybrid_product.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "drivers/cpu/packed_weights.h"
#include "drivers/cpu/self_test.h"
#include "drivers/cpu/xnn_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = 8;  // inputs that lie together
constexpr size_t kLine = 64;
constexpr size_t kGroupBytes = kHybridColumns * kGroup;

size_t groupsOf(size_t inputs) {
  return (inputs + kGroup - 1) / kGroup;
}

}  // namespace

size_t HybridProduct::panelBytes() const {
  return 3 * kHybridColumns * sizeof(float) + groupsOf(inputs) * kGroupBytes;
}

size_t hybridRowBytes(size_t inputs) {
  // A line more than needed: rows of a power of two would share few sets of the cache.
  return (inputs + kLine - 1) / kLine * kLine + kLine;
}

void prepareHybridRow(const int8_t* numbers, size_t inputs, uint8_t* prepared) {
  for (size_t i = 0; i < inputs; ++i) prepared[i] = static_cast<uint8_t>(numbers[i]) ^ 0x80;
  std::memset(prepared + inputs, 0, hybridRowBytes(inputs) - inputs);
}

#if defined(__x86_64__)

#define HEARTH_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

namespace {

// Bytes of weights that are fetched ahead of their use where only one pass reads them.
constexpr size_t kAhead = 1024;

// sums += dot products of four neighbours of `inputs` and `weights`. Written out since GCC copies
// the sums of the intrinsic function to other registers until none are left, and then to memory.
[[gnu::always_inline]] HEARTH_VNNI inline void addProducts(__m512i& sums, __m512i inputs,
                                                           __m512i weights) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(inputs), "v"(weights));
}

// kRows rows and one panel. What is `ahead` is fetched meanwhile, `aheadStep` bytes for each group
// of inputs.
template <size_t kRows>
HEARTH_VNNI void multiplyTile(const HybridProduct& product, const uint8_t* rows,
                              const struct xnn_quantization_params* parameters,
                              const uint8_t* panel, const uint8_t* ahead, size_t aheadStep,
                              size_t columns, float* output) {
  // Pointers to each third row: an address has room for the stride and twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  const size_t stride = hybridRowBytes(product.inputs);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t) triples[t] = rows + 3 * t * stride;
  __m512i low[kRows];
  __m512i high[kRows];
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) low[r] = high[r] = _mm512_setzero_si512();
  const uint8_t* weights = panel + kHybridColumns * sizeof(int32_t);
  for (size_t g = groupsOf(product.inputs); g > 0; --g) {
    const __m512i first = _mm512_loadu_si512(weights);
    const __m512i second = _mm512_loadu_si512(weights + kLine);
    if constexpr (kRows == 1) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(ahead + kLine), _MM_HINT_T0);
    } else {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    }
    ahead += aheadStep;
    weights += kGroupBytes;
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      int64_t eight;
      std::memcpy(&eight, triples[r / 3] + r % 3 * stride, sizeof eight);
      const __m512i inputs = _mm512_set1_epi64(eight);
      addProducts(low[r], inputs, first);
      addProducts(high[r], inputs, second);
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < kTriples; ++t) triples[t] += kGroup;
  }
  const __m512i evens =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
  const __m512i weightSums = _mm512_loadu_si512(panel);
  const __m512 scales = _mm512_loadu_ps(weights);
  const __m512 biases = _mm512_loadu_ps(weights + kLine);
  const __m512 lowest = _mm512_set1_ps(product.lowest);
  const __m512 highest = _mm512_set1_ps(product.highest);
  const __mmask16 mask =
      columns >= kHybridColumns ? 0xffff : static_cast<__mmask16>((1u << columns) - 1);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    // Neighbours have the sums of four inputs each.
    const __m512i both = _mm512_add_epi32(_mm512_permutex2var_epi32(low[r], evens, high[r]),
                                          _mm512_permutex2var_epi32(low[r], odds, high[r]));
    const __m512i zeroPoint = _mm512_set1_epi32(parameters[r].zero_point + 128);
    const __m512i sum = _mm512_add_epi32(both, _mm512_mullo_epi32(weightSums, zeroPoint));
    const __m512 scaled =
        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(parameters[r].scale));
    const __m512 value = _mm512_fmadd_ps(scaled, scales, biases);
    // In this order a NaN stays one.
    _mm512_mask_storeu_ps(output + r * product.outputStride, mask,
                          _mm512_min_ps(highest, _mm512_max_ps(lowest, value)));
  }
}

using TileFunction = void (*)(const HybridProduct&, const uint8_t*,
                              const struct xnn_quantization_params*, const uint8_t*, const uint8_t*,
                              size_t, size_t, float*);

template <size_t... kIndex>
constexpr std::array<TileFunction, kHybridRows> allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kIndex + 1>...};
}

// What XNNPACK packs, compared with the description.
bool isPackedInPanels(size_t inputs, size_t columns) {
  // Behind both there is something to read.
  std::vector<int8_t> weights(columns * inputs + XNN_EXTRA_BYTES);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i * 7 % 255 - 127);
  std::vector<float> scales(columns + XNN_EXTRA_QUANTIZATION_PARAMS, 1.0f);
  std::vector<float> biases(columns);
  for (size_t i = 0; i < columns; ++i) {
    scales[i] = 1.0f + 0.25f * static_cast<float>(i);
    biases[i] = -1.0f - static_cast<float>(i);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  PackedWeights packed(true);
  const WeightPlace place;
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "FULLY_CONNECTED", nullptr, [&] {
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(
        inputs, columns, inputs, columns, scales.data(), weights.data(), biases.data(), -kInfinity,
        kInfinity, 0, nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  HybridProduct product;
  product.inputs = inputs;
  product.columns = columns;
  if (status != xnn_status_success ||
      packed.sizeOf(place) < product.panels() * product.panelBytes())
    return false;
  for (size_t column = 0; column < product.panels() * kHybridColumns; ++column) {
    const uint8_t* panel = packed.dataOf(place) + column / kHybridColumns * product.panelBytes();
    const size_t lane = column % kHybridColumns;
    const bool isInside = column < columns;
    int32_t sum = 0;
    for (size_t i = 0; i < groupsOf(inputs) * kGroup; ++i) {
      const int8_t weight = isInside && i < inputs ? weights[column * inputs + i] : int8_t{0};
      const uint8_t* at = panel + kHybridColumns * sizeof(int32_t) + i / kGroup * kGroupBytes +
                          lane * kGroup + i % kGroup;
      if (isInside && static_cast<int8_t>(*at) != weight) return false;
      sum += weight;
    }
    if (!isInside) continue;
    int32_t weightSum = 0;
    std::memcpy(&weightSum, panel + lane * sizeof(int32_t), sizeof weightSum);
    const uint8_t* end = panel + kHybridColumns * sizeof(int32_t) + groupsOf(inputs) * kGroupBytes;
    float found[2];
    std::memcpy(&found[0], end + lane * sizeof(float), sizeof(float));
    std::memcpy(&found[1], end + kLine + lane * sizeof(float), sizeof(float));
    if (weightSum != -sum || found[0] != scales[column] || found[1] != biases[column]) return false;
  }
  return true;
}

}  // namespace

bool hasHybridProduct() {
  static const bool has =
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      initializeXnnpack() && isPackedInPanels(13, 37) && isPackedInPanels(16, 16);
  return has;
}

void multiplyHybrid(const HybridProduct& product, const uint8_t* prepared,
                    const struct xnn_quantization_params* parameters, size_t rows,
                    size_t firstPanel, size_t lastPanel, float* output) {
  static constexpr std::array<TileFunction, kHybridRows> kTiles =
      allTiles(std::make_index_sequence<kHybridRows>());
  if (rows == 0) return;
  const size_t panelBytes = product.panelBytes();
  const size_t tiles = (rows + kHybridRows - 1) / kHybridRows;
  // One row goes through memory once, and nothing is reused. For more, the next panel comes while
  // this one is in use, a little with each tile: all at once would fill the queues.
  const size_t groups = groupsOf(product.inputs);
  const size_t aheadStep =
      rows == 1 ? kGroupBytes
                : std::min(kLine, (panelBytes + tiles * groups - 1) / (tiles * groups));
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    const uint8_t* const panel = product.packed + p * panelBytes;
    const size_t column = p * kHybridColumns;
    for (size_t t = 0; t < tiles; ++t) {
      // As even as can be.
      const size_t row = t * rows / tiles;
      const size_t count = (t + 1) * rows / tiles - row;
      const uint8_t* const ahead =
          rows == 1 ? panel + kAhead : panel + panelBytes + t * groups * aheadStep;
      kTiles[count - 1](product, prepared + row * hybridRowBytes(product.inputs), parameters + row,
                        panel, ahead, aheadStep, product.columns - column,
                        output + row * product.outputStride + column);
    }
  }
}

#else

bool hasHybridProduct() {
  return false;
}
void multiplyHybrid(const HybridProduct&, const uint8_t*, const struct xnn_quantization_params*,
                    size_t, size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
