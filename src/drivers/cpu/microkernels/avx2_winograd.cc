// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/avx2_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/cpu/microkernels/avx2_gemm.h"
#if defined(__x86_64__)
#include "drivers/cpu/microkernels/avx2_narrowing.h"
#include "drivers/cpu/microkernels/avx2_vectors.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kTaps = 3;          // of a window in a row
constexpr size_t kPair = 2;          // channels whose products are added at once
constexpr size_t kTilesAtOnce = 12;  // whose sums are in the scratch memory
constexpr size_t kVectorBytes = kWinogradColumns * sizeof(int32_t);
constexpr size_t kHeadBytes = 2 * kVectorBytes;  // constants and factors

size_t pointBytes(size_t channels) {
  return channels * kWinogradColumns * sizeof(int16_t);
}

size_t panelBytes(size_t channels) {
  return kHeadBytes + kWinogradPoints * pointBytes(channels);
}

using Taps = std::array<int32_t, kTaps>;

// The transformed weights of one row or column of a window, times two.
std::array<int32_t, kWinogradWindow> transformed(const Taps& taps) {
  return {2 * taps[0], taps[0] + taps[1] + taps[2], taps[0] - taps[1] + taps[2], 2 * taps[2]};
}

}  // namespace

size_t avx2WinogradBytes(const Avx2Winograd& product) {
  return product.panels() * panelBytes(product.channels);
}

void packAvx2Winograd(const Avx2Winograd& product, const uint8_t* weights, int32_t weightZero,
                      const int32_t* bias, const float* factors, uint8_t* packed) {
  std::memset(packed, 0, avx2WinogradBytes(product));
  for (size_t column = 0; column < product.columns; ++column) {
    uint8_t* const panel = packed + column / kWinogradColumns * panelBytes(product.channels);
    const size_t place = column % kWinogradColumns;
    if (bias != nullptr) std::memcpy(panel + place * sizeof *bias, bias + column, sizeof *bias);
    std::memcpy(panel + kVectorBytes + place * sizeof *factors, factors + column, sizeof *factors);
    const uint8_t* const from = weights + column * kTaps * kTaps * product.channels;
    for (size_t channel = 0; channel < product.channels; ++channel) {
      std::array<std::array<int32_t, kWinogradWindow>, kTaps> rows;
      for (size_t y = 0; y < kTaps; ++y) {
        Taps taps;
        for (size_t x = 0; x < kTaps; ++x) {
          const uint8_t value = from[(y * kTaps + x) * product.channels + channel];
          taps[x] = product.isSigned ? static_cast<int8_t>(value) : value - weightZero;
        }
        rows[y] = transformed(taps);
      }
      uint8_t* const to = panel + kHeadBytes +
                          (channel / kPair * kWinogradColumns + place) * kPair * sizeof(int16_t) +
                          channel % kPair * sizeof(int16_t);
      for (size_t x = 0; x < kWinogradWindow; ++x) {
        const auto points = transformed({rows[0][x], rows[1][x], rows[2][x]});
        for (size_t y = 0; y < kWinogradWindow; ++y) {
          const auto weight = static_cast<int16_t>(points[y]);
          std::memcpy(to + (y * kWinogradWindow + x) * pointBytes(product.channels), &weight,
                      sizeof weight);
        }
      }
    }
  }
}

size_t avx2WinogradScratch() {
  return kWinogradPoints * kTilesAtOnce * kVectorBytes;
}

#if defined(__x86_64__)

namespace {

using Window = __m256i[kWinogradWindow];

HEARTH_AVX2 __m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Transforms inputs of one row or column.
HEARTH_AVX2 void transformInputs(const Window& from, Window& to) {
  to[0] = _mm256_sub_epi16(from[0], from[2]);
  to[1] = _mm256_add_epi16(from[1], from[2]);
  to[2] = _mm256_sub_epi16(from[2], from[1]);
  to[3] = _mm256_sub_epi16(from[1], from[3]);
}

template <bool kIsSigned>
HEARTH_AVX2_FUNCTION void transformTile(size_t channels, int32_t inputZero,
                                        const uint8_t* const* inputs, size_t pointStride,
                                        int16_t* to) {
  // Of inputs that are all equal only this point is not zero, and it is four times the input.
  constexpr size_t kConstantPoint = 1;
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(4 * inputZero));
  for (size_t c = 0; c < channels; c += kWinogradChannels) {
    __m256i rows[kWinogradWindow][kWinogradWindow];
#pragma GCC unroll 4
    for (size_t x = 0; x < kWinogradWindow; ++x) {
      Window column, result;
#pragma GCC unroll 4
      for (size_t y = 0; y < kWinogradWindow; ++y) {
        const __m128i bytes =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(inputs[y * kWinogradWindow + x] + c));
        column[y] = kIsSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
      }
      transformInputs(column, result);
#pragma GCC unroll 4
      for (size_t y = 0; y < kWinogradWindow; ++y) rows[y][x] = result[y];
    }
#pragma GCC unroll 4
    for (size_t y = 0; y < kWinogradWindow; ++y) {
      Window result;
      transformInputs(rows[y], result);
      if (y == kConstantPoint)
        result[kConstantPoint] = _mm256_sub_epi16(result[kConstantPoint], zeros);
#pragma GCC unroll 4
      for (size_t x = 0; x < kWinogradWindow; ++x)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(to + (y * kWinogradWindow + x) * pointStride + c),
            result[x]);
    }
  }
}

// How many bytes ahead of their use weights are fetched.
constexpr size_t kAhead = 2048;

// The sums of kTiles tiles at one point. `to` has those of a tile every kVectorBytes.
template <size_t kTiles>
HEARTH_AVX2_FUNCTION void multiplyPoint(const int16_t* tiles, size_t channels,
                                        const uint8_t* weights, uint8_t* to) {
  __m256i sums[kTiles][2];
#pragma GCC unroll 6
  for (size_t t = 0; t < kTiles; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
  for (size_t c = 0; c < channels; c += kPair, weights += kVectorBytes) {
    // The weights of the next point follow, and those of the next panel.
    _mm_prefetch(reinterpret_cast<const char*>(weights + kAhead), _MM_HINT_T0);
    const __m256i halves[2] = {load(weights), load(weights + sizeof(__m256i))};
#pragma GCC unroll 6
    for (size_t t = 0; t < kTiles; ++t) {
      int32_t pair;
      std::memcpy(&pair, tiles + t * channels + c, sizeof pair);
      const __m256i inputs = _mm256_set1_epi32(pair);
#pragma GCC unroll 2
      for (size_t h = 0; h < 2; ++h)
        sums[t][h] = _mm256_add_epi32(sums[t][h], _mm256_madd_epi16(inputs, halves[h]));
    }
  }
#pragma GCC unroll 6
  for (size_t t = 0; t < kTiles; ++t)
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + t * kVectorBytes + h * sizeof(__m256i)),
                          sums[t][h]);
}

template <size_t kTiles>
void multiplyPoints(const int16_t* tiles, size_t count, size_t channels, const uint8_t* weights,
                    uint8_t* to) {
  for (; count >= kTiles; count -= kTiles) {
    multiplyPoint<kTiles>(tiles, channels, weights, to);
    tiles += kTiles * channels;
    to += kTiles * kVectorBytes;
  }
  if constexpr (kTiles > 1) {
    if (count > 0) multiplyPoints<kTiles / 2>(tiles, count, channels, weights, to);
  }
}

// Transforms sums of one row or column back.
HEARTH_AVX2 void transformSums(const Window& from, __m256i (&to)[kWinogradSide]) {
  to[0] = _mm256_add_epi32(_mm256_add_epi32(from[0], from[1]), from[2]);
  to[1] = _mm256_sub_epi32(_mm256_sub_epi32(from[1], from[2]), from[3]);
}

// Writes the outputs of one tile, whose sums at the points are kTilesAtOnce vectors apart.
template <bool kIsSigned>
HEARTH_AVX2 void writeTile(const Avx2Narrowing<kIsSigned>& narrowing, const uint8_t* from,
                           const uint8_t* head, size_t columns, size_t column,
                           uint8_t* const* outputs) {
  constexpr size_t kOutputs = kWinogradSide * kWinogradSide;
  __m256i sums[kOutputs][2];
#pragma GCC unroll 2
  for (size_t h = 0; h < 2; ++h) {
    const uint8_t* const half = from + h * sizeof(__m256i);
    const __m256i constants = load(head + h * sizeof(__m256i));
    __m256i lines[kWinogradSide][kWinogradWindow];
#pragma GCC unroll 4
    for (size_t x = 0; x < kWinogradWindow; ++x) {
      Window points;
      __m256i line[kWinogradSide];
#pragma GCC unroll 4
      for (size_t y = 0; y < kWinogradWindow; ++y)
        points[y] = load(half + (y * kWinogradWindow + x) * kTilesAtOnce * kVectorBytes);
      transformSums(points, line);
#pragma GCC unroll 2
      for (size_t y = 0; y < kWinogradSide; ++y) lines[y][x] = line[y];
    }
#pragma GCC unroll 2
    for (size_t y = 0; y < kWinogradSide; ++y) {
      __m256i line[kWinogradSide];
      transformSums(lines[y], line);
#pragma GCC unroll 2
      for (size_t x = 0; x < kWinogradSide; ++x)
        sums[y * kWinogradSide + x][h] = _mm256_add_epi32(_mm256_srai_epi32(line[x], 2), constants);
    }
  }
#pragma GCC unroll 2
  for (size_t o = 0; o < kOutputs; o += 2) {
    const __m256i bytes = narrowing.bytes(narrowing.words(sums[o], head + kVectorBytes),
                                          narrowing.words(sums[o + 1], head + kVectorBytes));
    if (outputs[o] != nullptr)
      narrowing.store(outputs[o] + column, _mm256_castsi256_si128(bytes), columns);
    if (outputs[o + 1] != nullptr)
      narrowing.store(outputs[o + 1] + column, _mm256_extracti128_si256(bytes, 1), columns);
  }
}

template <bool kIsSigned>
HEARTH_AVX2_FUNCTION void writeTiles(const Avx2Winograd& product, const uint8_t* sums, size_t count,
                                     const uint8_t* head, size_t column, uint8_t* const* outputs) {
  const Avx2Narrowing<kIsSigned> narrowing(product.outputZero, product.lowest, product.highest);
  for (size_t t = 0; t < count; ++t)
    writeTile(narrowing, sums + t * kVectorBytes, head, product.columns - column, column,
              outputs + t * kWinogradSide * kWinogradSide);
}

}  // namespace

bool hasAvx2Winograd(size_t channels) {
  return hasAvx2Gemm() && channels != 0 && channels % kWinogradChannels == 0 &&
         channels <= kWinogradMostChannels;
}

void transformAvx2Winograd(const Avx2Winograd& product, int32_t inputZero,
                           const uint8_t* const* inputs, size_t tile, size_t tiles,
                           int16_t* transformed) {
  const auto transform = product.isSigned ? transformTile<true> : transformTile<false>;
  transform(product.channels, inputZero, inputs, tiles * product.channels,
            transformed + tile * product.channels);
}

void multiplyAvx2Winograd(const Avx2Winograd& product, const int16_t* transformed, size_t tiles,
                          size_t firstPanel, size_t lastPanel, uint8_t* const* outputs,
                          uint8_t* scratch) {
  constexpr size_t kMostTiles = 6;
  const size_t channels = product.channels;
  const auto write = product.isSigned ? writeTiles<true> : writeTiles<false>;
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    const uint8_t* const panel = product.packed + p * panelBytes(channels);
    for (size_t tile = 0; tile < tiles; tile += kTilesAtOnce) {
      const size_t count = std::min(kTilesAtOnce, tiles - tile);
      for (size_t point = 0; point < kWinogradPoints; ++point)
        multiplyPoints<kMostTiles>(transformed + (point * tiles + tile) * channels, count, channels,
                                   panel + kHeadBytes + point * pointBytes(channels),
                                   scratch + point * kTilesAtOnce * kVectorBytes);
      write(product, scratch, count, panel, p * kWinogradColumns,
            outputs + tile * kWinogradSide * kWinogradSide);
    }
  }
}

#else

bool hasAvx2Winograd(size_t) {
  return false;
}
void transformAvx2Winograd(const Avx2Winograd&, int32_t, const uint8_t* const*, size_t, size_t,
                           int16_t*) {}
void multiplyAvx2Winograd(const Avx2Winograd&, const int16_t*, size_t, size_t, size_t,
                          uint8_t* const*, uint8_t*) {}

#endif

}  // namespace hearth::cpu
