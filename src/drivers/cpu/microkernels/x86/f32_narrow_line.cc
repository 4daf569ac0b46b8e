// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"

#include <algorithm>
#include <array>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {
namespace {

// Copies channels [firstChannel, channels) of pixels [firstPixel, count).
void splitOneByOne(const float* pixels, size_t step, size_t firstPixel, size_t count,
                   size_t firstChannel, size_t channels, float* planes, size_t planeSize) {
  for (size_t c = firstChannel; c < channels; ++c)
    for (size_t i = firstPixel; i < count; ++i) planes[c * planeSize + i] = pixels[i * step + c];
}

// So many pixels stay in the first-level cache.
constexpr size_t kSplitTogether = 64;

}  // namespace

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

// Copies 8 channels of 8 pixels to their planes.
HEARTH_FMA void split256(const float* pixels, size_t step, float* planes, size_t planeSize) {
  __m256 pairs[8];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    const __m256 even = _mm256_loadu_ps(pixels + 2 * i * step);
    const __m256 odd = _mm256_loadu_ps(pixels + (2 * i + 1) * step);
    pairs[2 * i] = _mm256_unpacklo_ps(even, odd);
    pairs[2 * i + 1] = _mm256_unpackhi_ps(even, odd);
  }
  // By half of the pixels, channels 0 to 3, and 4 to 7 in the upper half of each vector.
  __m256 fours[2][4];
#pragma GCC unroll 2
  for (size_t half = 0; half < 2; ++half)
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      const __m256 first = pairs[4 * half + i];
      const __m256 second = pairs[4 * half + 2 + i];
      fours[half][2 * i] = _mm256_shuffle_ps(first, second, 0x44);
      fours[half][2 * i + 1] = _mm256_shuffle_ps(first, second, 0xee);
    }
#pragma GCC unroll 4
  for (size_t c = 0; c < 4; ++c) {
    _mm256_storeu_ps(planes + c * planeSize,
                     _mm256_permute2f128_ps(fours[0][c], fours[1][c], 0x20));
    _mm256_storeu_ps(planes + (c + 4) * planeSize,
                     _mm256_permute2f128_ps(fours[0][c], fours[1][c], 0x31));
  }
}

}  // namespace

size_t f32NarrowLanes() {
  static const bool has256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has512() ? kLanes512 : has256 ? kLanes256 : 0;
}

void multiplyF32NarrowLine(const F32NarrowLine& line) {
  has512() ? multiplyLine<true>(line) : multiplyLine<false>(line);
}

void splitF32Channels(const float* pixels, size_t step, size_t count, size_t channels,
                      float* planes, size_t planeSize) {
  const size_t wide = f32NarrowLanes() == 0 ? 0 : channels / 8 * 8;
  for (size_t first = 0; first < count; first += kSplitTogether) {
    const size_t last = std::min(count, first + kSplitTogether);
    const size_t whole = first + (last - first) / 8 * 8;
    for (size_t c = 0; c < wide; c += 8)
      for (size_t i = first; i < whole; i += 8)
        split256(pixels + i * step + c, step, planes + c * planeSize + i, planeSize);
    splitOneByOne(pixels, step, whole, last, 0, wide, planes, planeSize);
    splitOneByOne(pixels, step, first, last, wide, channels, planes, planeSize);
  }
}

#else

size_t f32NarrowLanes() {
  return 0;
}

void multiplyF32NarrowLine(const F32NarrowLine&) {}

void splitF32Channels(const float* pixels, size_t step, size_t count, size_t channels,
                      float* planes, size_t planeSize) {
  for (size_t first = 0; first < count; first += kSplitTogether)
    splitOneByOne(pixels, step, first, std::min(count, first + kSplitTogether), 0, channels, planes,
                  planeSize);
}

#endif

}  // namespace hearth::cpu
