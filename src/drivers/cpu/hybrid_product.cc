// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/hybrid_product.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "base/immortal.h"
#include "drivers/cpu/machine.h"
#include "drivers/cpu/packed_weights.h"
#include "drivers/cpu/self_test.h"
#include "drivers/cpu/xnn_kernel.h"

#if defined(__x86_64__)
#include "drivers/cpu/vnni_vectors.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = kHybridGroup;
constexpr size_t kLine = 64;
constexpr size_t kGroupBytes = kHybridColumns * kGroup;

size_t groupsOf(size_t inputs) {
  return (inputs + kGroup - 1) / kGroup;
}

}  // namespace

size_t HybridProduct::panelBytes() const {
  return 3 * kHybridColumns * sizeof(float) + groupsOf(inputs) * kGroupBytes;
}

Result<const uint8_t*> packedHybrid(const HybridProduct& product, const PackedWeights& weights,
                                    WeightPlace place) {
  const size_t bytes = product.panels() * product.panelBytes();
  if (weights.sizeOf(place) < bytes)
    return fail(ErrorCode::kUnsupported, "A layer of {} bytes is packed to {}.", bytes,
                weights.sizeOf(place));
  return weights.dataOf(place);
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

namespace {

// Bytes of weights that are fetched ahead of their use where only one pass reads them: a page, so
// that its address is translated in time, too.
constexpr size_t kAhead = 4096;
// Groups of inputs that all tiles pass before the next ones: their weights stay in the first-level
// cache. Meanwhile the sums of so many rows are kept.
constexpr size_t kGroupsTogether = 256;
constexpr size_t kRowsTogether = 16 * kHybridRows;

// Rows and a part of one panel's inputs.
struct Tile {
  const uint8_t* rows = nullptr;  // from the first input on, as `panel`
  const struct xnn_quantization_params* parameters = nullptr;
  const uint8_t* panel = nullptr;
  size_t firstGroup = 0;
  size_t groups = 0;
  // Sums of the inputs before, and for those behind: [rows][2][16], where a part is not all.
  int32_t* sums = nullptr;
  // What is fetched meanwhile, so many bytes for each group of inputs.
  const uint8_t* ahead = nullptr;
  size_t aheadStep = 0;
  size_t columns = 0;
  float* output = nullptr;
};

template <size_t kRows>
HEARTH_VNNI_FUNCTION void multiplyTile(const HybridProduct& product, const Tile& tile) {
  // Pointers to each third row: an address has room for the stride and twice the stride.
  constexpr size_t kTriples = (kRows + 2) / 3;
  const size_t stride = hybridRowBytes(product.inputs);
  const uint8_t* triples[kTriples];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTriples; ++t)
    triples[t] = tile.rows + tile.firstGroup * kGroup + 3 * t * stride;
  __m512i low[kRows];
  __m512i high[kRows];
  if (tile.firstGroup == 0) {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) low[r] = high[r] = _mm512_setzero_si512();
  } else {
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) {
      low[r] = _mm512_loadu_si512(tile.sums + 2 * r * kHybridColumns);
      high[r] = _mm512_loadu_si512(tile.sums + (2 * r + 1) * kHybridColumns);
    }
  }
  const uint8_t* weights =
      tile.panel + kHybridColumns * sizeof(int32_t) + tile.firstGroup * kGroupBytes;
  const uint8_t* ahead = tile.ahead;
  const size_t aheadStep = tile.aheadStep;
  for (size_t g = tile.groups; g > 0; --g) {
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
      _mm512_storeu_si512(tile.sums + 2 * r * kHybridColumns, low[r]);
      _mm512_storeu_si512(tile.sums + (2 * r + 1) * kHybridColumns, high[r]);
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
      tile.columns >= kHybridColumns ? 0xffff : static_cast<__mmask16>((1u << tile.columns) - 1);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    // Neighbours have the sums of four inputs each.
    const __m512i both = _mm512_add_epi32(_mm512_permutex2var_epi32(low[r], evens, high[r]),
                                          _mm512_permutex2var_epi32(low[r], odds, high[r]));
    const __m512i zeroPoint = _mm512_set1_epi32(tile.parameters[r].zero_point + 128);
    const __m512i sum = _mm512_add_epi32(both, _mm512_mullo_epi32(weightSums, zeroPoint));
    const __m512 scaled =
        _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(tile.parameters[r].scale));
    const __m512 value = _mm512_fmadd_ps(scaled, scales, biases);
    // In this order a NaN stays one.
    _mm512_mask_storeu_ps(tile.output + r * product.outputStride, mask,
                          _mm512_min_ps(highest, _mm512_max_ps(lowest, value)));
  }
}

using TileFunction = void (*)(const HybridProduct&, const Tile&);

template <size_t... kIndex>
constexpr std::array<TileFunction, kHybridRows> allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kIndex + 1>...};
}

// `output`: of the first row and the panel's first column.
void multiplyPanel(const HybridProduct& product, const uint8_t* prepared,
                   const struct xnn_quantization_params* parameters, size_t rows, size_t panel,
                   float* output) {
  static constexpr std::array<TileFunction, kHybridRows> kTiles =
      allTiles(std::make_index_sequence<kHybridRows>());
  const size_t groups = groupsOf(product.inputs);
  const size_t tiles = (rows + kHybridRows - 1) / kHybridRows;
  // What one row reads of a panel is not read again.
  const size_t groupsTogether = rows == 1 ? groups : kGroupsTogether;
  int32_t sums[kRowsTogether * 2 * kHybridColumns];
  Tile tile;
  tile.panel = product.packed + panel * product.panelBytes();
  tile.columns = product.columns - panel * kHybridColumns;
  for (size_t first = 0; first < groups; first += groupsTogether) {
    tile.firstGroup = first;
    tile.groups = std::min(groupsTogether, groups - first);
    // What comes next is fetched while this is in use, a little with each tile: all at once would
    // fill the queues.
    const size_t bytes = tile.groups * kGroupBytes + kLine;
    tile.aheadStep = kGroupBytes;
    if (rows > 1)
      tile.aheadStep = std::min(kLine, (bytes + tiles * tile.groups - 1) / (tiles * tile.groups));
    for (size_t t = 0; t < tiles; ++t) {
      // As even as can be.
      const size_t row = t * rows / tiles;
      const size_t count = (t + 1) * rows / tiles - row;
      tile.rows = prepared + row * hybridRowBytes(product.inputs);
      tile.parameters = parameters + row;
      tile.sums = sums + row * 2 * kHybridColumns;
      tile.ahead = tile.panel + first * kGroupBytes +
                   (rows == 1 ? kAhead : bytes + t * tile.groups * tile.aheadStep);
      tile.output = output + row * product.outputStride;
      kTiles[count - 1](product, tile);
    }
  }
}

// What XNNPACK packs, compared with the description: of a fully connected layer, or of a
// convolution with windows of `window` by `window` places.
bool isPackedInPanels(PackedWeights& packed, WeightPlace place, size_t channels, size_t columns,
                      uint32_t window = 0) {
  const size_t inputs = window == 0 ? channels : window * window * channels;
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
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "FULLY_CONNECTED", nullptr, [&] {
    if (window == 0)
      return xnn_create_fully_connected_nc_qd8_f32_qc8w(
          inputs, columns, inputs, columns, scales.data(), weights.data(), biases.data(),
          -kInfinity, kInfinity, 0, nullptr, packed.provider(), &op);
    const uint32_t padding = window / 2;
    return xnn_create_convolution2d_nhwc_qd8_f32_qc8w(
        padding, padding, padding, padding, window, window, 1, 1, 1, 1, 1, channels, columns,
        channels, columns, scales.data(), weights.data(), biases.data(), -kInfinity, kInfinity, 0,
        nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  // Otherwise what is remembered of this machine would be wrong.
  if (status == xnn_status_out_of_memory) throw std::bad_alloc();
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
  static constinit base::Immortal<bool> has;
  return has.get([] {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           readsPackings(PackedProduct::kHybrid, [] {
             PackedWeights packed(true, PackedWeights::kProbeGroup);
             return initializeXnnpack() && isPackedInPanels(packed, {0, 0}, 13, 37) &&
                    isPackedInPanels(packed, {0, 1}, 16, 16) &&
                    isPackedInPanels(packed, {0, 2}, 16, 37, 3) &&
                    isPackedInPanels(packed, {0, 3}, 8, 16, 1);
           });
  });
}

void multiplyHybrid(const HybridProduct& product, const uint8_t* prepared,
                    const struct xnn_quantization_params* parameters, size_t rows,
                    size_t firstPanel, size_t lastPanel, float* output) {
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    for (size_t first = 0; first < rows; first += kRowsTogether) {
      const size_t count = std::min(kRowsTogether, rows - first);
      multiplyPanel(product, prepared + first * hybridRowBytes(product.inputs), parameters + first,
                    count, p, output + first * product.outputStride + p * kHybridColumns);
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
