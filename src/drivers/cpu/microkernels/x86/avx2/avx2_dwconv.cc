// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_dwconv.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_dwconv.h"
#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kBlock = 16;  // channels that are computed together
constexpr size_t kVectorBytes = 32;
constexpr size_t kBlockVectors = kBlock * sizeof(int32_t) / kVectorBytes;

size_t pairsOf(size_t kernelHeight) {
  return (kernelHeight + 1) / 2;
}

// Bytes of a block: constants and factors, and for each column and pair of rows the two weights of
// each channel, as words.
size_t blockBytes(const Avx2Dwconv& product) {
  return kBlock * sizeof(int32_t) * (2 + product.kernelWidth * pairsOf(product.kernelHeight));
}

size_t blocksOf(size_t channels) {
  return (channels + kBlock - 1) / kBlock;
}

// The first channel of a block. The last block begins early where it would be incomplete, and
// computes some channels again.
size_t firstChannel(size_t channels, size_t block) {
  return channels < kBlock ? 0 : std::min(block * kBlock, channels - kBlock);
}

// The lane of a channel in its block, as interleaving two rows of words arranges channels.
size_t laneOf(size_t channel) {
  return channel % 4 + channel / 8 * 4 + channel / 4 % 2 * 8;
}

}  // namespace

size_t avx2DwconvBytes(const Avx2Dwconv& product) {
  return blocksOf(product.channels) * blockBytes(product);
}

void packAvx2Dwconv(const Avx2Dwconv& product, const uint8_t* weights, const int32_t* bias,
                    const float* factors, int32_t inputZero, uint8_t* packed) {
  std::memset(packed, 0, avx2DwconvBytes(product));
  const size_t pairs = pairsOf(product.kernelHeight);
  constexpr size_t kLanes = kBlock * sizeof(int32_t);
  for (size_t b = 0; b < blocksOf(product.channels); ++b, packed += blockBytes(product)) {
    const size_t first = firstChannel(product.channels, b);
    for (size_t i = 0; i < std::min(kBlock, product.channels); ++i) {
      const size_t channel = first + i;
      const size_t lane = laneOf(i) * sizeof(int32_t);
      int32_t sum = 0;
      for (size_t y = 0; y < product.kernelHeight; ++y) {
        for (size_t x = 0; x < product.kernelWidth; ++x) {
          const uint8_t value = weights[(y * product.kernelWidth + x) * product.channels + channel];
          const auto weight = static_cast<int16_t>(product.isSigned ? static_cast<int8_t>(value)
                                                                    : value - product.weightZero);
          std::memcpy(packed + (2 + x * pairs + y / 2) * kLanes + lane + y % 2 * sizeof weight,
                      &weight, sizeof weight);
          sum += weight;
        }
      }
      // The arithmetic is unsigned, because a hostile bias may make it wrap, as it does in the
      // kernels.
      const uint32_t constant = static_cast<uint32_t>(bias != nullptr ? bias[channel] : 0) -
                                static_cast<uint32_t>(sum * inputZero);
      std::memcpy(packed + lane, &constant, sizeof constant);
      std::memcpy(packed + kLanes + lane, factors + channel, sizeof(float));
    }
  }
}

#if defined(__x86_64__)

namespace {

HEARTH_AVX2 __m256i loadInts(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

HEARTH_AVX2 __m128i loadBytes(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
// A copy of a few bytes takes longer than all else. Half a block, as of 8 channels, needs none.
HEARTH_AVX2 __m128i loadBytes(const uint8_t* from, size_t count) {
  if (count == kBlock / 2) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  uint8_t copy[kBlock] = {};
  std::memcpy(copy, from, count);
  return loadBytes(copy);
}
HEARTH_AVX2 void storeBytes(uint8_t* to, __m128i bytes, size_t count) {
  if (count == kBlock / 2)
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
  else
    std::memcpy(to, &bytes, count);
}

template <bool kIsSigned>
HEARTH_AVX2 __m256i widened(__m128i bytes) {
  return kIsSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

// XNNPACK rounds and clamps in this way, too. The upper bound is applied before the conversion,
// which has no result for large numbers.
template <bool kIsSigned>
HEARTH_AVX2 __m128i narrowed(const __m256i (&sums)[kBlockVectors], const uint8_t* factors,
                             __m256 ceiling, __m256i zeroWords, __m128i lowest) {
  __m256i steps[kBlockVectors];
#pragma GCC unroll 2
  for (size_t v = 0; v < kBlockVectors; ++v)
    steps[v] = _mm256_cvtps_epi32(_mm256_min_ps(
        _mm256_mul_ps(_mm256_cvtepi32_ps(sums[v]),
                      _mm256_loadu_ps(reinterpret_cast<const float*>(factors + v * kVectorBytes))),
        ceiling));
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(steps[0], steps[1]), zeroWords);
  const __m128i low = _mm256_castsi256_si128(words);
  const __m128i high = _mm256_extracti128_si256(words, 1);
  return kIsSigned ? _mm_max_epi8(_mm_packs_epi16(low, high), lowest)
                   : _mm_max_epu8(_mm_packus_epi16(low, high), lowest);
}

// Computes the channels of a block, `count` of them if it is not whole, of kTile outputs. All loops
// are unrolled: the sums live in registers.
template <bool kIsSigned, bool kIsWhole, size_t kHeight, size_t kWidth, size_t kTile,
          size_t kStride>
HEARTH_AVX2 void multiplyBlock(const Avx2Dwconv& product, const uint8_t* block,
                               const uint8_t* const* columns, size_t channel, size_t count,
                               uint8_t* output, size_t step) {
  constexpr size_t kPairs = (kHeight + 1) / 2;
  constexpr size_t kLanes = kBlock * sizeof(int32_t);
  __m256i sums[kTile][kBlockVectors];
#pragma GCC unroll 4
  for (size_t t = 0; t < kTile; ++t)
#pragma GCC unroll 2
    for (size_t v = 0; v < kBlockVectors; ++v) sums[t][v] = loadInts(block + v * kVectorBytes);
#pragma GCC unroll 16
  for (size_t x = 0; x < (kTile - 1) * kStride + kWidth; ++x) {
#pragma GCC unroll 3
    for (size_t p = 0; p < kPairs; ++p) {
      __m256i rows[2];
#pragma GCC unroll 2
      for (size_t y = 0; y < 2; ++y) {
        // The row below the window has weights of zero.
        if (2 * p + y >= kHeight) {
          rows[y] = rows[0];
          continue;
        }
        const uint8_t* const at = columns[x * kHeight + 2 * p + y] + channel;
        rows[y] = widened<kIsSigned>(kIsWhole ? loadBytes(at) : loadBytes(at, count));
      }
      const __m256i lanes[kBlockVectors] = {_mm256_unpacklo_epi16(rows[0], rows[1]),
                                            _mm256_unpackhi_epi16(rows[0], rows[1])};
#pragma GCC unroll 4
      for (size_t t = 0; t < kTile; ++t) {
        if (x < t * kStride || x - t * kStride >= kWidth) continue;
        const uint8_t* const weights = block + (2 + (x - t * kStride) * kPairs + p) * kLanes;
#pragma GCC unroll 2
        for (size_t v = 0; v < kBlockVectors; ++v)
          sums[t][v] = _mm256_add_epi32(
              sums[t][v], _mm256_madd_epi16(lanes[v], loadInts(weights + v * kVectorBytes)));
      }
    }
  }
  const __m256 ceiling = _mm256_set1_ps(static_cast<float>(product.highest - product.outputZero));
  const __m256i zeroWords = _mm256_set1_epi16(static_cast<int16_t>(product.outputZero));
  const __m128i lowest = _mm_set1_epi8(static_cast<char>(product.lowest));
#pragma GCC unroll 4
  for (size_t t = 0; t < kTile; ++t) {
    const __m128i bytes = narrowed<kIsSigned>(sums[t], block + kLanes, ceiling, zeroWords, lowest);
    uint8_t* const at = output + t * step * product.channels + channel;
    if (kIsWhole)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), bytes);
    else
      storeBytes(at, bytes, count);
  }
}

template <bool kIsSigned, size_t kHeight, size_t kWidth, size_t kTile, size_t kStride>
HEARTH_AVX2_FUNCTION void multiplyTile(const Avx2Dwconv& product, const uint8_t* const* columns,
                                       uint8_t* output, size_t step) {
  const uint8_t* block = product.packed;
  if (product.channels < kBlock) {
    multiplyBlock<kIsSigned, false, kHeight, kWidth, kTile, kStride>(
        product, block, columns, 0, product.channels, output, step);
    return;
  }
  const size_t bytes = blockBytes(product);
  for (size_t b = 0; b < blocksOf(product.channels); ++b, block += bytes)
    multiplyBlock<kIsSigned, true, kHeight, kWidth, kTile, kStride>(
        product, block, columns, firstChannel(product.channels, b), kBlock, output, step);
}

template <size_t kTile, size_t kStride>
void multiply(const Avx2Dwconv& product, const uint8_t* const* columns, uint8_t* output,
              size_t step) {
  if (product.isSigned)
    product.kernelHeight == 3
        ? multiplyTile<true, 3, 3, kTile, kStride>(product, columns, output, step)
        : multiplyTile<true, 5, 5, kTile, kStride>(product, columns, output, step);
  else
    product.kernelHeight == 3
        ? multiplyTile<false, 3, 3, kTile, kStride>(product, columns, output, step)
        : multiplyTile<false, 5, 5, kTile, kStride>(product, columns, output, step);
}

}  // namespace

bool hasAvx2Dwconv(size_t kernelHeight, size_t kernelWidth) {
  return hasAvx2() && kernelHeight == kernelWidth && (kernelHeight == 3 || kernelHeight == 5);
}

void multiplyAvx2Dwconv(const Avx2Dwconv& product, const uint8_t* const* columns, uint8_t* output) {
  multiply<1, 1>(product, columns, output, 1);
}

void multiplyAvx2DwconvTile(const Avx2Dwconv& product, size_t stride, const uint8_t* const* columns,
                            uint8_t* output, size_t step) {
  stride == 1 ? multiply<kDepthwiseTile, 1>(product, columns, output, step)
              : multiply<kDepthwiseTile, 2>(product, columns, output, step);
}

#else

bool hasAvx2Dwconv(size_t, size_t) {
  return false;
}
void multiplyAvx2Dwconv(const Avx2Dwconv&, const uint8_t* const*, uint8_t*) {}
void multiplyAvx2DwconvTile(const Avx2Dwconv&, size_t, const uint8_t* const*, uint8_t*, size_t) {}

#endif

}  // namespace hearth::cpu
