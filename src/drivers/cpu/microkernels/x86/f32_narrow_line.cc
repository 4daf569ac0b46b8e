// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"

#include <algorithm>
#include <array>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

#define HEARTH_FMA __attribute__((target("avx2,fma")))
#define HEARTH_512 __attribute__((target("avx512f,fma")))

namespace {

// Computes kVectors vectors of outputs, from `first` on. All loops over vectors and columns are
// unrolled: the sums live in registers.
template <size_t kColumns, size_t kVectors>
HEARTH_FMA void multiply256(const F32NarrowLine& line, size_t first) {
  __m256 sums[kColumns][kVectors];
#pragma GCC unroll 8
  for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) sums[column][v] = _mm256_set1_ps(line.bias[column]);
  for (size_t tap = 0; tap < line.taps; ++tap) {
    const float* inputs = line.window[tap].inputs + first;
    const float* weights = line.window[tap].weights;
    for (size_t c = 0; c < line.channels; ++c, inputs += line.channelStep, ++weights) {
      __m256 values[kVectors];
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) values[v] = _mm256_loadu_ps(inputs + v * 8);
#pragma GCC unroll 8
      for (size_t column = 0; column < kColumns; ++column) {
        const __m256 factor = _mm256_broadcast_ss(weights + column * line.columnStep);
#pragma GCC unroll 8
        for (size_t v = 0; v < kVectors; ++v)
          sums[column][v] = _mm256_fmadd_ps(values[v], factor, sums[column][v]);
      }
    }
  }
  const __m256 lowest = _mm256_set1_ps(line.lowest);
  const __m256 highest = _mm256_set1_ps(line.highest);
#pragma GCC unroll 8
  for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v)
      // In this order a NaN stays a NaN.
      _mm256_storeu_ps(line.results + column * line.resultStep + first + v * 8,
                       _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[column][v])));
}

// The same with vectors of twice the size.
template <size_t kColumns, size_t kVectors>
HEARTH_512 void multiply512(const F32NarrowLine& line, size_t first) {
  __m512 sums[kColumns][kVectors];
#pragma GCC unroll 8
  for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) sums[column][v] = _mm512_set1_ps(line.bias[column]);
  for (size_t tap = 0; tap < line.taps; ++tap) {
    const float* inputs = line.window[tap].inputs + first;
    const float* weights = line.window[tap].weights;
    for (size_t c = 0; c < line.channels; ++c, inputs += line.channelStep, ++weights) {
      __m512 values[kVectors];
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) values[v] = _mm512_loadu_ps(inputs + v * 16);
#pragma GCC unroll 8
      for (size_t column = 0; column < kColumns; ++column) {
        const __m512 factor = _mm512_set1_ps(weights[column * line.columnStep]);
#pragma GCC unroll 8
        for (size_t v = 0; v < kVectors; ++v)
          sums[column][v] = _mm512_fmadd_ps(values[v], factor, sums[column][v]);
      }
    }
  }
  const __m512 lowest = _mm512_set1_ps(line.lowest);
  const __m512 highest = _mm512_set1_ps(line.highest);
#pragma GCC unroll 8
  for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v)
      // In this order a NaN stays a NaN.
      _mm512_storeu_ps(line.results + column * line.resultStep + first + v * 16,
                       _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[column][v])));
}

bool has512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

constexpr size_t kLanes256 = 8;
constexpr size_t kLanes512 = 16;

// As many vectors as registers allow beside their inputs and a factor: sums hide each other's
// latency.
constexpr size_t mostVectors(size_t registers, size_t columns) {
  constexpr size_t kMost = 8;
  return std::min(kMost, (registers - 2) / (columns + 1));
}

template <bool kIs512, size_t kColumns>
void multiplyColumns(const F32NarrowLine& line) {
  constexpr size_t kLanes = kIs512 ? kLanes512 : kLanes256;
  constexpr size_t kMost = mostVectors(kIs512 ? 32 : 16, kColumns);
  using Multiply = void (*)(const F32NarrowLine& line, size_t first);
  // By number of vectors, less 1.
  static constexpr auto kMultiply = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
    if constexpr (kIs512)
      return std::array<Multiply, kMost>{multiply512<kColumns, kIndex + 1>...};
    else
      return std::array<Multiply, kMost>{multiply256<kColumns, kIndex + 1>...};
  }(std::make_index_sequence<kMost>());
  const size_t vectors = (line.outputs + kLanes - 1) / kLanes;
  const size_t tiles = (vectors + kMost - 1) / kMost;
  for (size_t t = 0; t < tiles; ++t) {
    const size_t first = t * vectors / tiles;
    kMultiply[(t + 1) * vectors / tiles - first - 1](line, first * kLanes);
  }
}

// Calls multiplyColumns() for this number of columns.
template <bool kIs512, size_t kColumns = 1>
void multiplyLine(const F32NarrowLine& line) {
  if (line.columns == kColumns) return multiplyColumns<kIs512, kColumns>(line);
  if constexpr (kColumns < (kIs512 ? kLanes512 : kLanes256) / 2)
    multiplyLine<kIs512, kColumns + 1>(line);
}

}  // namespace

size_t f32NarrowLanes() {
  static const bool has256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has512() ? kLanes512 : has256 ? kLanes256 : 0;
}

void multiplyF32NarrowLine(const F32NarrowLine& line) {
  has512() ? multiplyLine<true>(line) : multiplyLine<false>(line);
}

#else

size_t f32NarrowLanes() {
  return 0;
}

void multiplyF32NarrowLine(const F32NarrowLine&) {}

#endif

}  // namespace hearth::cpu
