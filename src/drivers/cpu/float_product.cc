// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/float_product.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/machine.h"
#include "drivers/cpu/packed_weights.h"
#include "drivers/cpu/self_test.h"
#include "drivers/cpu/xnn_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

#define HEARTH_FMA __attribute__((target("avx2,fma")))

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kHalf = kFloatColumns / 2;
// Bytes of weights that are fetched ahead of their use.
constexpr size_t kAhead = 896;

// kRows rows, the first of `rowsOfTap` for each tap, and kPanels panels, of which the last may be
// partly outside.
template <size_t kRows, size_t kPanels>
HEARTH_FMA void multiplyTile(const FloatProduct& product, const float* const* inputs,
                             size_t rowsOfTap, const float* panel, size_t columns, float* output) {
  const size_t panelSize = product.panelSize();
  // Half panels. All loops over them and over rows are unrolled: the sums live in registers.
  constexpr size_t kHalves = 2 * kPanels;
  const auto halfOf = [&](const float* first, size_t h) {
    return first + h / 2 * panelSize + h % 2 * kHalf;
  };
  __m256 sums[kRows][kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    const __m256 bias = _mm256_loadu_ps(halfOf(panel, h));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  const float* weights = panel + kFloatColumns;
  const size_t channels = product.channels;
  for (size_t tap = 0; tap < product.taps; ++tap, inputs += rowsOfTap) {
    const float* row[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) row[r] = inputs[r];
    for (size_t c = 0; c < channels; ++c, weights += kFloatColumns) {
      // Panels follow one another, so that what is ahead is needed even at the end of one.
      _mm_prefetch(reinterpret_cast<const char*>(weights) + kAhead, _MM_HINT_T0);
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
  const __m256 lowest = _mm256_set1_ps(product.lowest);
  const __m256 highest = _mm256_set1_ps(product.highest);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t h = 0; h < kHalves; ++h) {
      // In this order a NaN stays one.
      const __m256 value = _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[r][h]));
      const size_t first = h * kHalf;
      float* const at = output + r * product.outputStride + first;
      if (columns >= first + kHalf) {
        _mm256_storeu_ps(at, value);
      } else if (columns > first) {
        const __m256i mask =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(columns - first)), lanes);
        _mm256_maskstore_ps(at, mask, value);
      }
    }
  }
}

template <size_t kRows, size_t kPanels>
void multiplyRows(const FloatProduct& product, const float* const* inputs, size_t rowsOfTap,
                  size_t firstPanel, size_t lastPanel, float* output) {
  const auto tile = [&]<size_t kTogether>(size_t panel) {
    const size_t first = panel * kFloatColumns;
    multiplyTile<kRows, kTogether>(product, inputs, rowsOfTap,
                                   product.packed + panel * product.panelSize(),
                                   product.columns - first, output + first);
  };
  size_t panel = firstPanel;
  for (; panel + kPanels <= lastPanel; panel += kPanels) tile.template operator()<kPanels>(panel);
  for (; panel < lastPanel; ++panel) tile.template operator()<1>(panel);
}

// What XNNPACK packs for [columns][taps][channels] weights, compared with the description: of a
// convolution, or of a fully connected layer where `side` is 0.
bool isPackedInPanels(uint32_t side, size_t channels, size_t columns) {
  const size_t taps = std::max<size_t>(1, size_t{side} * side);
  std::vector<float> weights(columns * taps * channels);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  std::vector<float> bias(columns);
  for (size_t i = 0; i < columns; ++i) bias[i] = -1 - static_cast<float>(i);
  PackedWeights packed(true, PackedWeights::kProbeGroup);
  const WeightPlace place;
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "CONV_2D", nullptr, [&] {
    if (side == 0)
      return xnn_create_fully_connected_nc_f32(channels, columns, channels, columns, weights.data(),
                                               bias.data(), -kInfinity, kInfinity, 0, nullptr,
                                               packed.provider(), &op);
    return xnn_create_convolution2d_nhwc_f32(
        0, 0, 0, 0, side, side, 1, 1, 1, 1, 1, channels, columns, channels, columns, weights.data(),
        bias.data(), -kInfinity, kInfinity, 0, nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  FloatProduct product;
  product.taps = taps;
  product.channels = channels;
  product.columns = columns;
  const size_t size = product.panels() * product.panelSize();
  if (status != xnn_status_success || packed.sizeOf(place) < size * sizeof(float)) return false;
  const auto* values = reinterpret_cast<const float*>(packed.dataOf(place));
  for (size_t column = 0; column < columns; ++column) {
    const float* lane =
        values + column / kFloatColumns * product.panelSize() + column % kFloatColumns;
    if (lane[0] != bias[column]) return false;
    for (size_t k = 0; k < taps * channels; ++k)
      if (lane[(k + 1) * kFloatColumns] != weights[column * taps * channels + k]) return false;
  }
  return true;
}

}  // namespace

bool hasFloatProduct() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          readsPackings(PackedProduct::kFloat, [] {
                            return initializeXnnpack() && isPackedInPanels(0, 5, 37) &&
                                   isPackedInPanels(1, 5, 37) && isPackedInPanels(3, 5, 37);
                          });
  return has;
}

void multiplyFloats(const FloatProduct& product, const float* const* inputs, size_t rows,
                    size_t firstPanel, size_t lastPanel, float* output) {
  // With few rows several panels together hide the latency of the sums.
  switch (rows) {
    case 1:
      return multiplyRows<1, 4>(product, inputs, rows, firstPanel, lastPanel, output);
    case 2:
      return multiplyRows<2, 2>(product, inputs, rows, firstPanel, lastPanel, output);
    case 3:
      return multiplyRows<3, 2>(product, inputs, rows, firstPanel, lastPanel, output);
    case 4:
      return multiplyRows<4, 1>(product, inputs, rows, firstPanel, lastPanel, output);
    case 5:
      return multiplyRows<5, 1>(product, inputs, rows, firstPanel, lastPanel, output);
    default:
      return multiplyRows<6, 1>(product, inputs, rows, firstPanel, lastPanel, output);
  }
}

#else

bool hasFloatProduct() {
  return false;
}
void multiplyFloats(const FloatProduct&, const float* const*, size_t, size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
