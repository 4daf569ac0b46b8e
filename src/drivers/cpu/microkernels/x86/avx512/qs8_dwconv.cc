// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx512/qs8_dwconv.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#endif

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = 4;       // rows that one dot product sums
constexpr size_t kLaneBytes = 16;  // narrowing and interleaving move bytes within these
constexpr size_t kVectors = 4;     // of sums, for one vector of bytes

size_t groupsOf(size_t kernelHeight) {
  return (kernelHeight + kGroup - 1) / kGroup;
}

// Bytes of a block. Channels are packed in blocks of as many channels as a vector has bytes; the
// last block may have half of them. A block has 4 vectors of biases, 4 of factors, and 4 of weights
// for each column and group of rows.
size_t blockBytes(const Qs8Dwconv& product, size_t block) {
  return block * sizeof(int32_t) * (2 + product.kernelWidth * groupsOf(product.kernelHeight));
}

constexpr size_t kWhole = 64;
constexpr size_t kHalf = 32;

size_t blockAt(const Qs8Dwconv& product, size_t channel) {
  return product.channels - channel <= kHalf ? kHalf : kWhole;
}

// The lane of a channel's sum in its block, as interleaving four rows of bytes arranges channels.
size_t laneOf(size_t channel, size_t block) {
  const size_t vector = channel % kLaneBytes / kGroup;
  return vector * (block / kVectors) + channel / kLaneBytes * kGroup + channel % kGroup;
}

}  // namespace

size_t depthwisePackedBytes(const Qs8Dwconv& product) {
  size_t bytes = 0;
  for (size_t channel = 0, block = 0; channel < product.channels; channel += block) {
    block = blockAt(product, channel);
    bytes += blockBytes(product, block);
  }
  return bytes;
}

void packDepthwise(const Qs8Dwconv& product, const int8_t* weights, const int32_t* bias,
                   const float* factors, int32_t inputZero, uint8_t* packed) {
  std::memset(packed, 0, depthwisePackedBytes(product));
  const size_t groups = groupsOf(product.kernelHeight);
  for (size_t first = 0, block = 0; first < product.channels; first += block) {
    block = blockAt(product, first);
    const size_t vectorsBytes = block * sizeof(int32_t);
    uint8_t* const values = packed + 2 * vectorsBytes;
    for (size_t i = 0; i < std::min(block, product.channels - first); ++i) {
      const size_t channel = first + i;
      const size_t lane = laneOf(i, block) * sizeof(int32_t);
      int32_t sum = 0;
      for (size_t y = 0; y < product.kernelHeight; ++y) {
        for (size_t x = 0; x < product.kernelWidth; ++x) {
          const int8_t weight = weights[(y * product.kernelWidth + x) * product.channels + channel];
          values[(x * groups + y / kGroup) * vectorsBytes + lane + y % kGroup] =
              static_cast<uint8_t>(weight);
          sum += weight;
        }
      }
      // The product reads inputs plus 128. The arithmetic is unsigned, because a hostile bias may
      // make it wrap, as it does in the kernels.
      const uint32_t constant = static_cast<uint32_t>(bias != nullptr ? bias[channel] : 0) -
                                static_cast<uint32_t>(sum * (inputZero + 128));
      std::memcpy(packed + lane, &constant, sizeof constant);
      std::memcpy(packed + vectorsBytes + lane, factors + channel, sizeof(float));
    }
    packed += blockBytes(product, block);
  }
}

#if defined(__x86_64__)

namespace {

// Interleaves the bytes of four rows, so that each lane has those of one channel.
template <typename Vector>
HEARTH_VNNI void interleave(const typename Vector::Ints (&rows)[kGroup],
                            typename Vector::Ints (&lanes)[kVectors]) {
  const auto lowFirst = Vector::lowBytes(rows[0], rows[1]);
  const auto highFirst = Vector::highBytes(rows[0], rows[1]);
  const auto lowLast = Vector::lowBytes(rows[2], rows[3]);
  const auto highLast = Vector::highBytes(rows[2], rows[3]);
  lanes[0] = Vector::lowPairs(lowFirst, lowLast);
  lanes[1] = Vector::highPairs(lowFirst, lowLast);
  lanes[2] = Vector::lowPairs(highFirst, highLast);
  lanes[3] = Vector::highPairs(highFirst, highLast);
}

// Writes the sums of `count` channels, from `channel` on, of kTile outputs that are `step` pixels
// apart.
template <typename Vector, bool kIsWhole, size_t kTile>
HEARTH_VNNI void storeBlock(const typename Vector::Ints (&sums)[kTile][kVectors],
                            const Qs8Dwconv& product, const uint8_t* block, size_t channel,
                            size_t count, int8_t* output, size_t step) {
  using Ints = typename Vector::Ints;
  constexpr size_t kVectorsBytes = kVectors * Vector::kBytes;
  const auto ceiling = Vector::ofFloats(static_cast<float>(product.highest - product.outputZero));
  const Ints zeroWords = Vector::ofWords(static_cast<int16_t>(product.outputZero));
  const Ints lowestBytes = Vector::ofBytes(static_cast<int8_t>(product.lowest));
#pragma GCC unroll 4
  for (size_t t = 0; t < kTile; ++t) {
    Ints steps[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v)
      steps[v] = Vector::scaled(
          sums[t][v], Vector::loadFloats(block + kVectorsBytes + v * Vector::kBytes), ceiling);
    const Ints bytes = Vector::narrowed(steps, zeroWords, lowestBytes);
    int8_t* const at = output + t * step * product.channels + channel;
    if (kIsWhole)
      Vector::store(at, bytes);
    else
      Vector::store(at, bytes, count);
  }
}

// Computes `count` channels, from `channel` on, of kTile outputs. All loops are unrolled: the sums
// live in registers.
template <typename Vector, bool kIsWhole, size_t kHeight, size_t kWidth, size_t kTile,
          size_t kStride>
HEARTH_VNNI void multiplyBlock(const Qs8Dwconv& product, const uint8_t* block,
                               const int8_t* const* columns, size_t channel, size_t count,
                               int8_t* output, size_t step) {
  using Ints = typename Vector::Ints;
  constexpr size_t kGroups = (kHeight + kGroup - 1) / kGroup;
  constexpr size_t kVectorsBytes = kVectors * Vector::kBytes;
  const uint8_t* const weights = block + 2 * kVectorsBytes;
  const Ints flip = Vector::ofBytes(-128);
  Ints sums[kTile][kVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const Ints bias = Vector::load(block + v * Vector::kBytes);
#pragma GCC unroll 4
    for (size_t t = 0; t < kTile; ++t) sums[t][v] = bias;
  }
#pragma GCC unroll 16
  for (size_t x = 0; x < (kTile - 1) * kStride + kWidth; ++x) {
#pragma GCC unroll 2
    for (size_t g = 0; g < kGroups; ++g) {
      Ints rows[kGroup];
#pragma GCC unroll 4
      for (size_t y = 0; y < kGroup; ++y) {
        // Rows below the window have weights of zero.
        if (g * kGroup + y >= kHeight) {
          rows[y] = rows[y - 1];
          continue;
        }
        const int8_t* const at = columns[x * kHeight + g * kGroup + y] + channel;
        rows[y] = Vector::exclusiveOr(kIsWhole ? Vector::load(at) : Vector::load(at, count), flip);
      }
      Ints lanes[kVectors];
      interleave<Vector>(rows, lanes);
#pragma GCC unroll 4
      for (size_t t = 0; t < kTile; ++t) {
        if (x < t * kStride || x - t * kStride >= kWidth) continue;
        const uint8_t* const at = weights + ((x - t * kStride) * kGroups + g) * kVectorsBytes;
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v)
          Vector::dot(sums[t][v], lanes[v], Vector::load(at + v * Vector::kBytes));
      }
    }
  }
  storeBlock<Vector, kIsWhole, kTile>(sums, product, block, channel, count, output, step);
}

template <size_t kHeight, size_t kWidth, size_t kTile, size_t kStride>
HEARTH_VNNI_FUNCTION void multiplyTile(const Qs8Dwconv& product, const int8_t* const* columns,
                                       int8_t* output, size_t step) {
  const uint8_t* block = product.packed;
  size_t channel = 0;
  size_t left = product.channels;
  for (; left >= kWhole; left -= kWhole, channel += kWhole, block += blockBytes(product, kWhole))
    multiplyBlock<WholeVector, true, kHeight, kWidth, kTile, kStride>(
        product, block, columns, channel, kWhole, output, step);
  if (left == kHalf)
    multiplyBlock<HalfVector, true, kHeight, kWidth, kTile, kStride>(product, block, columns,
                                                                     channel, left, output, step);
  else if (left > kHalf)
    multiplyBlock<WholeVector, false, kHeight, kWidth, kTile, kStride>(product, block, columns,
                                                                       channel, left, output, step);
  else if (left > 0)
    multiplyBlock<HalfVector, false, kHeight, kWidth, kTile, kStride>(product, block, columns,
                                                                      channel, left, output, step);
}

// Computes `count` channels, from `channel` on, of kTile outputs, place by place.
template <typename Vector, bool kIsWhole, size_t kTile>
HEARTH_VNNI void multiplyBlockOfPlaces(const Qs8Dwconv& product, const uint8_t* block,
                                       const int8_t* const* inputs, size_t inputStep,
                                       size_t channel, size_t count, int8_t* output) {
  using Ints = typename Vector::Ints;
  constexpr size_t kVectorsBytes = kVectors * Vector::kBytes;
  const uint8_t* weights = block + 2 * kVectorsBytes;
  const Ints flip = Vector::ofBytes(-128);
  Ints sums[kTile][kVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const Ints bias = Vector::load(block + v * Vector::kBytes);
#pragma GCC unroll 2
    for (size_t t = 0; t < kTile; ++t) sums[t][v] = bias;
  }
  const size_t last = product.kernelHeight - 1;
  for (size_t first = 0; first <= last; first += kGroup, weights += kVectorsBytes) {
#pragma GCC unroll 2
    for (size_t t = 0; t < kTile; ++t) {
      Ints rows[kGroup];
#pragma GCC unroll 4
      for (size_t i = 0; i < kGroup; ++i) {
        // Places behind the last one have weights of zero.
        const int8_t* const at = inputs[std::min(first + i, last) * inputStep + t] + channel;
        rows[i] = Vector::exclusiveOr(kIsWhole ? Vector::load(at) : Vector::load(at, count), flip);
      }
      Ints lanes[kVectors];
      interleave<Vector>(rows, lanes);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        Vector::dot(sums[t][v], lanes[v], Vector::load(weights + v * Vector::kBytes));
    }
  }
  storeBlock<Vector, kIsWhole, kTile>(sums, product, block, channel, count, output, 1);
}

template <size_t kTile>
HEARTH_VNNI_FUNCTION void multiplyPlaces(const Qs8Dwconv& product, const int8_t* const* inputs,
                                         size_t step, int8_t* output) {
  const uint8_t* block = product.packed;
  size_t channel = 0;
  size_t left = product.channels;
  for (; left >= kWhole; left -= kWhole, channel += kWhole, block += blockBytes(product, kWhole))
    multiplyBlockOfPlaces<WholeVector, true, kTile>(product, block, inputs, step, channel, kWhole,
                                                    output);
  if (left > kHalf)
    multiplyBlockOfPlaces<WholeVector, false, kTile>(product, block, inputs, step, channel, left,
                                                     output);
  else if (left > 0)
    multiplyBlockOfPlaces<HalfVector, false, kTile>(product, block, inputs, step, channel, left,
                                                    output);
}

}  // namespace

bool hasDepthwiseProduct(size_t kernelHeight, size_t kernelWidth) {
  return hasAvx512Vnni() && kernelHeight == kernelWidth && (kernelHeight == 3 || kernelHeight == 5);
}

void multiplyDepthwise(const Qs8Dwconv& product, const int8_t* const* columns, int8_t* output) {
  if (product.kernelHeight == 3)
    multiplyTile<3, 3, 1, 1>(product, columns, output, 1);
  else
    multiplyTile<5, 5, 1, 1>(product, columns, output, 1);
}

void multiplyDepthwiseTile(const Qs8Dwconv& product, size_t stride, const int8_t* const* columns,
                           int8_t* output, size_t step) {
  if (product.kernelHeight == 3)
    stride == 1 ? multiplyTile<3, 3, kDepthwiseTile, 1>(product, columns, output, step)
                : multiplyTile<3, 3, kDepthwiseTile, 2>(product, columns, output, step);
  else
    stride == 1 ? multiplyTile<5, 5, kDepthwiseTile, 1>(product, columns, output, step)
                : multiplyTile<5, 5, kDepthwiseTile, 2>(product, columns, output, step);
}

bool hasDepthwisePlaces(size_t places) {
  // Sums of more weights might overflow.
  constexpr size_t kMostPlaces = size_t{1} << 16;
  return hasAvx512Vnni() && places > 1 && places <= kMostPlaces;
}

void multiplyDepthwisePlaces(const Qs8Dwconv& product, const int8_t* const* inputs, size_t step,
                             size_t count, int8_t* output) {
  size_t first = 0;
  for (; first + 2 <= count; first += 2)
    multiplyPlaces<2>(product, inputs + first, step, output + first * product.channels);
  if (first < count)
    multiplyPlaces<1>(product, inputs + first, step, output + first * product.channels);
}

#else

bool hasDepthwiseProduct(size_t, size_t) {
  return false;
}
bool hasDepthwisePlaces(size_t) {
  return false;
}
void multiplyDepthwisePlaces(const Qs8Dwconv&, const int8_t* const*, size_t, size_t, int8_t*) {}
void multiplyDepthwise(const Qs8Dwconv&, const int8_t* const*, int8_t*) {}
void multiplyDepthwiseTile(const Qs8Dwconv&, size_t, const int8_t* const*, int8_t*, size_t) {}

#endif

}  // namespace hearth::cpu
