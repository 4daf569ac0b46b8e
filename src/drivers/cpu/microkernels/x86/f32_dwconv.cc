// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/f32_dwconv.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

#define HEARTH_FMA __attribute__((target("avx2,fma")))
#define HEARTH_512 __attribute__((target("avx512f,fma")))

namespace {

constexpr size_t kTile = kF32DwconvTile;

// All outputs for the 8 channels from `c` on.
template <size_t kKernel, size_t kStride>
HEARTH_FMA void multiply256(const F32DwconvLine& line, size_t c) {
  constexpr size_t kColumns = (kTile - 1) * kStride + kKernel;
  __m256 weights[kKernel][kKernel];  // by column and row
#pragma GCC unroll 5
  for (size_t x = 0; x < kKernel; ++x)
#pragma GCC unroll 5
    for (size_t y = 0; y < kKernel; ++y)
      weights[x][y] = _mm256_loadu_ps(line.weights + (y * kKernel + x) * line.weightStep + c);
  const __m256 bias = _mm256_loadu_ps(line.bias + c);
  const __m256 lowest = _mm256_set1_ps(line.lowest);
  const __m256 highest = _mm256_set1_ps(line.highest);
  for (size_t first = 0; first < line.outputs; first += kTile) {
    // The last tile begins early and computes some outputs again.
    first = std::min(first, line.outputs - kTile);
    __m256 sums[kTile] = {bias, bias, bias, bias};
#pragma GCC unroll 12
    for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 5
      for (size_t y = 0; y < kKernel; ++y) {
        const __m256 input =
            _mm256_loadu_ps(line.rows[y] + (first * kStride + column) * line.step + c);
#pragma GCC unroll 4
        for (size_t o = 0; o < kTile; ++o)
          if (column >= o * kStride && column - o * kStride < kKernel)
            sums[o] = _mm256_fmadd_ps(input, weights[column - o * kStride][y], sums[o]);
      }
#pragma GCC unroll 4
    for (size_t o = 0; o < kTile; ++o)
      // In this order a NaN stays a NaN.
      _mm256_storeu_ps(line.output + (first + o) * line.step + c,
                       _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[o])));
  }
}

// All outputs for the 16 channels from `c` on.
template <size_t kKernel, size_t kStride>
HEARTH_512 void multiply512(const F32DwconvLine& line, size_t c) {
  constexpr size_t kColumns = (kTile - 1) * kStride + kKernel;
  __m512 weights[kKernel][kKernel];  // by column and row
#pragma GCC unroll 5
  for (size_t x = 0; x < kKernel; ++x)
#pragma GCC unroll 5
    for (size_t y = 0; y < kKernel; ++y)
      weights[x][y] = _mm512_loadu_ps(line.weights + (y * kKernel + x) * line.weightStep + c);
  const __m512 bias = _mm512_loadu_ps(line.bias + c);
  const __m512 lowest = _mm512_set1_ps(line.lowest);
  const __m512 highest = _mm512_set1_ps(line.highest);
  for (size_t first = 0; first < line.outputs; first += kTile) {
    first = std::min(first, line.outputs - kTile);
    __m512 sums[kTile] = {bias, bias, bias, bias};
#pragma GCC unroll 12
    for (size_t column = 0; column < kColumns; ++column)
#pragma GCC unroll 5
      for (size_t y = 0; y < kKernel; ++y) {
        const __m512 input =
            _mm512_loadu_ps(line.rows[y] + (first * kStride + column) * line.step + c);
#pragma GCC unroll 4
        for (size_t o = 0; o < kTile; ++o)
          if (column >= o * kStride && column - o * kStride < kKernel)
            sums[o] = _mm512_fmadd_ps(input, weights[column - o * kStride][y], sums[o]);
      }
#pragma GCC unroll 4
    for (size_t o = 0; o < kTile; ++o)
      _mm512_storeu_ps(line.output + (first + o) * line.step + c,
                       _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[o])));
  }
}

// kOutputs outputs from `first` on for the 8 channels from `c` on.
template <size_t kOutputs>
HEARTH_FMA void multiplyWindows256(const F32DwconvWindows& windows, size_t first, size_t c) {
  __m256 sums[kOutputs];
#pragma GCC unroll 8
  for (size_t o = 0; o < kOutputs; ++o) sums[o] = _mm256_loadu_ps(windows.bias + c);
  const float* const* inputs = windows.inputs + first;
  for (size_t tap = 0; tap < windows.taps; ++tap, inputs += kF32DwconvWindows) {
    const __m256 weights = _mm256_loadu_ps(windows.weights[tap] + c);
#pragma GCC unroll 8
    for (size_t o = 0; o < kOutputs; ++o)
      sums[o] = _mm256_fmadd_ps(_mm256_loadu_ps(inputs[o] + c), weights, sums[o]);
  }
  const __m256 lowest = _mm256_set1_ps(windows.lowest);
  const __m256 highest = _mm256_set1_ps(windows.highest);
#pragma GCC unroll 8
  for (size_t o = 0; o < kOutputs; ++o)
    // In this order a NaN stays a NaN.
    _mm256_storeu_ps(windows.output + (first + o) * windows.channels + c,
                     _mm256_min_ps(highest, _mm256_max_ps(lowest, sums[o])));
}

// The same for 16 channels.
template <size_t kOutputs>
HEARTH_512 void multiplyWindows512(const F32DwconvWindows& windows, size_t first, size_t c) {
  __m512 sums[kOutputs];
#pragma GCC unroll 8
  for (size_t o = 0; o < kOutputs; ++o) sums[o] = _mm512_loadu_ps(windows.bias + c);
  const float* const* inputs = windows.inputs + first;
  for (size_t tap = 0; tap < windows.taps; ++tap, inputs += kF32DwconvWindows) {
    const __m512 weights = _mm512_loadu_ps(windows.weights[tap] + c);
#pragma GCC unroll 8
    for (size_t o = 0; o < kOutputs; ++o)
      sums[o] = _mm512_fmadd_ps(_mm512_loadu_ps(inputs[o] + c), weights, sums[o]);
  }
  const __m512 lowest = _mm512_set1_ps(windows.lowest);
  const __m512 highest = _mm512_set1_ps(windows.highest);
#pragma GCC unroll 8
  for (size_t o = 0; o < kOutputs; ++o)
    _mm512_storeu_ps(windows.output + (first + o) * windows.channels + c,
                     _mm512_min_ps(highest, _mm512_max_ps(lowest, sums[o])));
}

bool has512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

// All channels of kOutputs outputs from `first` on.
template <size_t kOutputs>
void multiplyWindows(const F32DwconvWindows& windows, size_t first) {
  const bool isWide = has512() && windows.channels >= 16;
  const size_t lanes = isWide ? 16 : 8;
  for (size_t c = 0; c < windows.channels; c += lanes) {
    // The last channels are computed with some before them.
    c = std::min(c, windows.channels - lanes);
    isWide ? multiplyWindows512<kOutputs>(windows, first, c)
           : multiplyWindows256<kOutputs>(windows, first, c);
  }
}

struct Level {
  size_t lanes = 0;  // 0: no instructions
  void (*multiply)(const F32DwconvLine& line, size_t c) = nullptr;
};

template <size_t kKernel, size_t kStride>
Level levelOf(size_t channels) {
  static const bool has256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has512() && channels >= 16) return {16, multiply512<kKernel, kStride>};
  if (has256 && channels >= 8) return {8, multiply256<kKernel, kStride>};
  return {};
}

}  // namespace

bool hasF32DwconvLine(size_t channels) {
  return levelOf<3, 1>(channels).lanes != 0;
}

void multiplyF32DwconvLine(const F32DwconvLine& line) {
  const Level level = line.kernel == 3   ? line.stride == 1 ? levelOf<3, 1>(line.channels)
                                                            : levelOf<3, 2>(line.channels)
                        : line.stride == 1 ? levelOf<5, 1>(line.channels)
                                         : levelOf<5, 2>(line.channels);
  for (size_t c = 0; c < line.channels; c += level.lanes)
    // The last channels are computed with some before them.
    level.multiply(line, std::min(c, line.channels - level.lanes));
}

void multiplyF32DwconvWindows(const F32DwconvWindows& windows) {
  size_t first = 0;
  if (windows.outputs == kF32DwconvWindows) return multiplyWindows<kF32DwconvWindows>(windows, 0);
  for (; first + 2 <= windows.outputs; first += 2) multiplyWindows<2>(windows, first);
  if (first < windows.outputs) multiplyWindows<1>(windows, first);
}

#else

bool hasF32DwconvLine(size_t) {
  return false;
}

void multiplyF32DwconvLine(const F32DwconvLine&) {}
void multiplyF32DwconvWindows(const F32DwconvWindows&) {}

#endif

}  // namespace hearth::cpu
