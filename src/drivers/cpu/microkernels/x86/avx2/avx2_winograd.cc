// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx2/avx2_narrowing.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kTaps = 3;          // of a window in a row
constexpr size_t kPair = 2;          // channels whose products are added at once
constexpr size_t kTilesAtOnce = 12;  // whose sums are in the scratch memory
constexpr size_t kVectorBytes = kWinogradColumns * sizeof(int32_t);
constexpr size_t kMostWindow = kWinogradMostSide + kTaps - 1;

// A panel begins with constants and factors. With tiles of 4 x 4, what makes a sum a positive
// number follows.
size_t headBytes(const Avx2Winograd& product) {
  return (product.side == 2 ? 2 : 3) * kVectorBytes;
}

size_t pointBytes(size_t channels) {
  return channels * kWinogradColumns * sizeof(int16_t);
}

size_t panelBytes(const Avx2Winograd& product) {
  return headBytes(product) + product.points() * pointBytes(product.channels);
}

using Taps = std::array<int32_t, kTaps>;

// The transformed weights of one row or column of a window: with tiles of 2 x 2, twice the usual
// ones; with tiles of 4 x 4 24 times, but for the last, which is 12 times the usual one so that it
// fits in 16 bits.
std::array<int32_t, kMostWindow> transformed(size_t side, const Taps& taps) {
  const int32_t ends = taps[0] + taps[2];
  if (side == 2) return {2 * taps[0], ends + taps[1], ends - taps[1], 2 * taps[2]};
  const int32_t farther = taps[0] + 4 * taps[2];
  return {6 * taps[0],           -4 * (ends + taps[1]), 4 * (taps[1] - ends),
          farther + 2 * taps[1], farther - 2 * taps[1], 12 * taps[2]};
}

// With tiles of 4 x 4 a sum at the end is an output times kScale, modulo 2^32. Times kInverse it is
// the output times 2^kScaleBits.
constexpr uint32_t kScale = 24 * 24;
constexpr int kScaleBits = 6;
constexpr uint32_t kInverse = 954437177;
static_assert((kScale >> kScaleBits) * kInverse == 1 && kScale % (1u << kScaleBits) == 0);

// The least sum of products of a column's weights and inputs.
int32_t leastSum(const uint8_t* weights, size_t count, int32_t inputZero) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto weight = static_cast<int8_t>(weights[i]);
    sum += weight * ((weight > 0 ? INT8_MIN : INT8_MAX) - inputZero);
  }
  return sum;
}

}  // namespace

size_t avx2WinogradBytes(const Avx2Winograd& product) {
  return product.panels() * panelBytes(product);
}

void packAvx2Winograd(const Avx2Winograd& product, const uint8_t* weights, int32_t weightZero,
                      int32_t inputZero, const int32_t* bias, const float* factors,
                      uint8_t* packed) {
  std::memset(packed, 0, avx2WinogradBytes(product));
  const size_t inputs = kTaps * kTaps * product.channels;
  for (size_t column = 0; column < product.columns; ++column) {
    uint8_t* const panel = packed + column / kWinogradColumns * panelBytes(product);
    const size_t place = column % kWinogradColumns;
    const uint8_t* const from = weights + column * inputs;
    // The arithmetic is unsigned, because a hostile bias may make it wrap.
    uint32_t constant = bias == nullptr ? 0 : static_cast<uint32_t>(bias[column]);
    if (product.side != 2) {
      const auto least = static_cast<uint32_t>(leastSum(from, inputs, inputZero));
      constant += least;
      const uint32_t toPositive = -(least << kScaleBits);
      std::memcpy(panel + 2 * kVectorBytes + place * sizeof toPositive, &toPositive,
                  sizeof toPositive);
    }
    std::memcpy(panel + place * sizeof constant, &constant, sizeof constant);
    std::memcpy(panel + kVectorBytes + place * sizeof *factors, factors + column, sizeof *factors);
    for (size_t channel = 0; channel < product.channels; ++channel) {
      std::array<std::array<int32_t, kMostWindow>, kTaps> rows;
      for (size_t y = 0; y < kTaps; ++y) {
        Taps taps;
        for (size_t x = 0; x < kTaps; ++x) {
          const uint8_t value = from[(y * kTaps + x) * product.channels + channel];
          taps[x] = product.isSigned ? static_cast<int8_t>(value) : value - weightZero;
        }
        rows[y] = transformed(product.side, taps);
      }
      uint8_t* const to = panel + headBytes(product) +
                          (channel / kPair * kWinogradColumns + place) * kPair * sizeof(int16_t) +
                          channel % kPair * sizeof(int16_t);
      for (size_t x = 0; x < product.window(); ++x) {
        const auto points = transformed(product.side, {rows[0][x], rows[1][x], rows[2][x]});
        for (size_t y = 0; y < product.window(); ++y) {
          const auto weight = static_cast<int16_t>(points[y]);
          std::memcpy(to + (y * product.window() + x) * pointBytes(product.channels), &weight,
                      sizeof weight);
        }
      }
    }
  }
}

size_t avx2WinogradScratch(const Avx2Winograd& product) {
  return product.points() * kTilesAtOnce * kVectorBytes;
}

#if defined(__x86_64__)

namespace {

HEARTH_AVX2 __m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// The transforms of tiles with a side, each of one row or column.
template <size_t kSide>
struct Tile;

template <>
struct Tile<2> {
  static constexpr size_t kWindow = 4;
  // Of inputs that are all equal only the point in this row and column is not zero, and it is the
  // input times this factor.
  static constexpr size_t kConstantPoint = 1;
  static constexpr int kConstantFactor = 4;

  HEARTH_AVX2 static void transformInputs(const __m256i (&from)[kWindow], __m256i (&to)[kWindow]) {
    to[0] = _mm256_sub_epi16(from[0], from[2]);
    to[1] = _mm256_add_epi16(from[1], from[2]);
    to[2] = _mm256_sub_epi16(from[2], from[1]);
    to[3] = _mm256_sub_epi16(from[1], from[3]);
  }
  HEARTH_AVX2 static void transformSums(const __m256i (&from)[kWindow], __m256i (&to)[2]) {
    to[0] = _mm256_add_epi32(_mm256_add_epi32(from[0], from[1]), from[2]);
    to[1] = _mm256_sub_epi32(_mm256_sub_epi32(from[1], from[2]), from[3]);
  }
  // The outputs of transformed sums; `head` is that of the panel, at the columns.
  HEARTH_AVX2 static __m256i outputsOf(__m256i sums, const uint8_t* head) {
    return _mm256_add_epi32(_mm256_srai_epi32(sums, 2), load(head));
  }
};

template <>
struct Tile<4> {
  static constexpr size_t kWindow = 6;
  static constexpr size_t kConstantPoint = 1;
  static constexpr int kConstantFactor = 36;

  HEARTH_AVX2 static __m256i fourTimes(__m256i value) { return _mm256_slli_epi16(value, 2); }
  HEARTH_AVX2 static void transformInputs(const __m256i (&from)[kWindow], __m256i (&to)[kWindow]) {
    const __m256i even = _mm256_sub_epi16(from[4], from[2]);
    const __m256i odd = _mm256_sub_epi16(from[3], from[1]);
    const __m256i twiceOdd = _mm256_add_epi16(odd, odd);
    const __m256i evenOfOne = _mm256_sub_epi16(from[4], fourTimes(from[2]));
    const __m256i oddOfOne = _mm256_sub_epi16(from[3], fourTimes(from[1]));
    to[0] = _mm256_add_epi16(fourTimes(_mm256_sub_epi16(from[0], from[2])), even);
    to[1] = _mm256_add_epi16(evenOfOne, oddOfOne);
    to[2] = _mm256_sub_epi16(evenOfOne, oddOfOne);
    to[3] = _mm256_add_epi16(even, twiceOdd);
    to[4] = _mm256_sub_epi16(even, twiceOdd);
    to[5] = _mm256_sub_epi16(_mm256_sub_epi16(from[5], from[3]), fourTimes(odd));
  }
  HEARTH_AVX2 static void transformSums(const __m256i (&from)[kWindow], __m256i (&to)[4]) {
    const __m256i sumOfOne = _mm256_add_epi32(from[1], from[2]);
    const __m256i differenceOfOne = _mm256_sub_epi32(from[1], from[2]);
    const __m256i sumOfTwo = _mm256_add_epi32(from[3], from[4]);
    const __m256i differenceOfTwo = _mm256_sub_epi32(from[3], from[4]);
    const __m256i twice = _mm256_add_epi32(differenceOfTwo, differenceOfTwo);
    // The weights of the last point are half of what they should be.
    const __m256i last = _mm256_add_epi32(from[5], from[5]);
    to[0] = _mm256_add_epi32(_mm256_add_epi32(from[0], sumOfOne), sumOfTwo);
    to[1] = _mm256_add_epi32(differenceOfOne, twice);
    to[2] = _mm256_add_epi32(sumOfOne, _mm256_slli_epi32(sumOfTwo, 2));
    to[3] = _mm256_add_epi32(_mm256_add_epi32(differenceOfOne, last), _mm256_slli_epi32(twice, 2));
  }
  HEARTH_AVX2 static __m256i outputsOf(__m256i sums, const uint8_t* head) {
    const __m256i scaled =
        _mm256_mullo_epi32(sums, _mm256_set1_epi32(static_cast<int32_t>(kInverse)));
    const __m256i positive = _mm256_add_epi32(scaled, load(head + 2 * kVectorBytes));
    return _mm256_add_epi32(_mm256_srli_epi32(positive, kScaleBits), load(head));
  }
};

template <size_t kSide, bool kIsSigned>
HEARTH_AVX2_FUNCTION void transformTile(size_t channels, int32_t inputZero,
                                        const uint8_t* const* inputs, size_t pointStride,
                                        int16_t* to) {
  constexpr size_t kWindow = Tile<kSide>::kWindow;
  constexpr size_t kConstantPoint = Tile<kSide>::kConstantPoint;
  const __m256i zeros =
      _mm256_set1_epi16(static_cast<int16_t>(Tile<kSide>::kConstantFactor * inputZero));
  for (size_t c = 0; c < channels; c += kWinogradChannels) {
    __m256i rows[kWindow][kWindow];
#pragma GCC unroll 6
    for (size_t x = 0; x < kWindow; ++x) {
      __m256i column[kWindow], result[kWindow];
#pragma GCC unroll 6
      for (size_t y = 0; y < kWindow; ++y) {
        const __m128i bytes =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(inputs[y * kWindow + x] + c));
        column[y] = kIsSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
      }
      Tile<kSide>::transformInputs(column, result);
#pragma GCC unroll 6
      for (size_t y = 0; y < kWindow; ++y) rows[y][x] = result[y];
    }
#pragma GCC unroll 6
    for (size_t y = 0; y < kWindow; ++y) {
      __m256i result[kWindow];
      Tile<kSide>::transformInputs(rows[y], result);
      if (y == kConstantPoint)
        result[kConstantPoint] = _mm256_sub_epi16(result[kConstantPoint], zeros);
#pragma GCC unroll 6
      for (size_t x = 0; x < kWindow; ++x)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (y * kWindow + x) * pointStride + c),
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

// Writes the outputs of one tile, whose sums at the points are kTilesAtOnce vectors apart.
template <size_t kSide, bool kIsSigned>
HEARTH_AVX2 void writeTile(const Avx2Narrowing<kIsSigned>& narrowing, const uint8_t* from,
                           const uint8_t* head, size_t columns, size_t column,
                           uint8_t* const* outputs) {
  constexpr size_t kWindow = Tile<kSide>::kWindow;
  constexpr size_t kOutputs = kSide * kSide;
  __m256i sums[kOutputs][2];
#pragma GCC unroll 2
  for (size_t h = 0; h < 2; ++h) {
    const size_t half = h * sizeof(__m256i);
    __m256i lines[kSide][kWindow];
#pragma GCC unroll 6
    for (size_t x = 0; x < kWindow; ++x) {
      __m256i points[kWindow], line[kSide];
#pragma GCC unroll 6
      for (size_t y = 0; y < kWindow; ++y)
        points[y] = load(from + half + (y * kWindow + x) * kTilesAtOnce * kVectorBytes);
      Tile<kSide>::transformSums(points, line);
#pragma GCC unroll 4
      for (size_t y = 0; y < kSide; ++y) lines[y][x] = line[y];
    }
#pragma GCC unroll 4
    for (size_t y = 0; y < kSide; ++y) {
      __m256i line[kSide];
      Tile<kSide>::transformSums(lines[y], line);
#pragma GCC unroll 4
      for (size_t x = 0; x < kSide; ++x)
        sums[y * kSide + x][h] = Tile<kSide>::outputsOf(line[x], head + half);
    }
  }
#pragma GCC unroll 8
  for (size_t o = 0; o < kOutputs; o += 2) {
    const __m256i bytes = narrowing.bytes(narrowing.words(sums[o], head + kVectorBytes),
                                          narrowing.words(sums[o + 1], head + kVectorBytes));
    if (outputs[o] != nullptr)
      narrowing.store(outputs[o] + column, _mm256_castsi256_si128(bytes), columns);
    if (outputs[o + 1] != nullptr)
      narrowing.store(outputs[o + 1] + column, _mm256_extracti128_si256(bytes, 1), columns);
  }
}

template <size_t kSide, bool kIsSigned>
HEARTH_AVX2_FUNCTION void writeTiles(const Avx2Winograd& product, const uint8_t* sums, size_t count,
                                     const uint8_t* head, size_t column, uint8_t* const* outputs) {
  const Avx2Narrowing<kIsSigned> narrowing(product.outputZero, product.lowest, product.highest);
  for (size_t t = 0; t < count; ++t)
    writeTile<kSide>(narrowing, sums + t * kVectorBytes, head, product.columns - column, column,
                     outputs + t * kSide * kSide);
}

}  // namespace

bool hasAvx2Winograd(size_t side, size_t channels, bool isSigned) {
  // With more input channels sums might leave 32 bits.
  constexpr size_t kMostOfTwo = 512;
  // With more, the sums of a column might lie 2^26 apart.
  constexpr size_t kMostOfFour = 224;
  static_assert(kTaps * kTaps * kMostOfFour * 255 * 128 < 1u << (32 - kScaleBits));
  if (!hasAvx2() || channels == 0 || channels % kWinogradChannels != 0) return false;
  // The transformed differences of uint8 weights from their zero point might leave 16 bits.
  return side == 2 ? channels <= kMostOfTwo : channels <= kMostOfFour && isSigned;
}

void transformAvx2Winograd(const Avx2Winograd& product, int32_t inputZero,
                           const uint8_t* const* inputs, size_t tile, size_t tiles,
                           int16_t* transformed) {
  const auto transform = product.side != 2  ? transformTile<4, true>
                         : product.isSigned ? transformTile<2, true>
                                            : transformTile<2, false>;
  transform(product.channels, inputZero, inputs, tiles * product.channels,
            transformed + tile * product.channels);
}

void multiplyAvx2Winograd(const Avx2Winograd& product, const int16_t* transformed, size_t tiles,
                          size_t firstPanel, size_t lastPanel, uint8_t* const* outputs,
                          uint8_t* scratch) {
  constexpr size_t kMostTiles = 6;
  const size_t channels = product.channels;
  const auto write = product.side != 2  ? writeTiles<4, true>
                     : product.isSigned ? writeTiles<2, true>
                                        : writeTiles<2, false>;
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    const uint8_t* const panel = product.packed + p * panelBytes(product);
    const uint8_t* const weights = panel + headBytes(product);
    for (size_t tile = 0; tile < tiles; tile += kTilesAtOnce) {
      const size_t count = std::min(kTilesAtOnce, tiles - tile);
      for (size_t point = 0; point < product.points(); ++point)
        multiplyPoints<kMostTiles>(transformed + (point * tiles + tile) * channels, count, channels,
                                   weights + point * pointBytes(channels),
                                   scratch + point * kTilesAtOnce * kVectorBytes);
      write(product, scratch, count, panel, p * kWinogradColumns,
            outputs + tile * product.outputs());
    }
  }
}

#else

bool hasAvx2Winograd(size_t, size_t, bool) {
  return false;
}
void transformAvx2Winograd(const Avx2Winograd&, int32_t, const uint8_t* const*, size_t, size_t,
                           int16_t*) {}
void multiplyAvx2Winograd(const Avx2Winograd&, const int16_t*, size_t, size_t, size_t,
                          uint8_t* const*, uint8_t*) {}

#endif

}  // namespace hearth::cpu
