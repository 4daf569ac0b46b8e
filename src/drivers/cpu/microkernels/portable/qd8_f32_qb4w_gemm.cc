// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/qd8_f32_qb4w_gemm.h"

#include <hearth_xnnpack.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstring>

#include "drivers/cpu/microkernels/portable/int4_tile.h"
#include "ops/half.h"
#include "ops/int4.h"

namespace hearth::cpu {
namespace {

constexpr size_t kGroup = kInt4Group;
constexpr size_t kLine = kInt4Line;
constexpr size_t kHeadBytes = kInt4HeadBytes;
// With more inputs in a block its sums would exceed 32 bits.
constexpr size_t kMostInBlock = size_t{1} << 16;

float scaleAt(const Qb4Gemm& product, const void* scales, size_t index) {
  return product.areScalesHalf ? static_cast<float>(static_cast<const ops::Half*>(scales)[index])
                               : static_cast<const float*>(scales)[index];
}

// Packs eight numbers of a column, the first in the lowest bits, as a group of the product.
uint32_t packedGroup(uint32_t numbers) {
  // Adds 8: numbers become 0 to 15.
  const uint32_t raised = numbers ^ 0x88888888;
  // Two bytes with two numbers each become four bytes with one.
  const auto spread = [](uint32_t four) {
    const uint32_t pairs = (four | four << 8) & 0x00ff00ff;
    return (pairs | pairs << 4) & 0x0f0f0f0f;
  };
  return spread(raised & 0xffff) | spread(raised >> 16) << 4;
}

int32_t sumOf(const uint8_t* pairs, size_t bytes) {
  // Adds numbers that are 8 too large, two for each byte.
  int32_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += ((pairs[i] & 15) ^ 8) + ((pairs[i] >> 4) ^ 8);
  return sum - static_cast<int32_t>(16 * bytes);
}

}  // namespace

void packInt4(const Qb4Gemm& product, const uint8_t* weights, const void* scales, const float* bias,
              uint8_t* packed) {
  const size_t blocks = product.blocks();
  const size_t blockPairs = product.blockSize / 2;
  std::memset(packed, 0, product.panels() * product.panelBytes());
  for (size_t column = 0; column < product.columns; ++column) {
    const size_t lane = column % kInt4Columns;
    uint8_t* const panel = packed + column / kInt4Columns * product.panelBytes();
    double sum = 0.0;
    int32_t wholeSum = 0;
    for (size_t b = 0; b < blocks; ++b) {
      const uint8_t* const pairs = weights + (column * blocks + b) * blockPairs;
      uint8_t* const block = panel + kHeadBytes + b * product.blockBytes();
      const size_t scaleBytes = product.scaleBytes();
      std::memcpy(block + lane * scaleBytes,
                  static_cast<const uint8_t*>(scales) + (column * blocks + b) * scaleBytes,
                  scaleBytes);
      uint8_t* const groups = block + kInt4Columns * scaleBytes + lane * kGroup / 2;
      for (size_t g = 0; g < product.blockSize / kGroup; ++g) {
        uint32_t numbers;
        std::memcpy(&numbers, pairs + g * sizeof numbers, sizeof numbers);
        numbers = packedGroup(numbers);
        std::memcpy(groups + g * kLine, &numbers, sizeof numbers);
      }
      wholeSum = sumOf(pairs, blockPairs);
      sum += static_cast<double>(scaleAt(product, scales, column * blocks + b)) * wholeSum;
    }
    const float real = static_cast<float>(sum);
    if (product.areSumsWhole)
      std::memcpy(panel + lane * sizeof(float), &wholeSum, sizeof wholeSum);
    else
      std::memcpy(panel + lane * sizeof(float), &real, sizeof real);
    if (bias != nullptr)
      std::memcpy(panel + (kInt4Columns + lane) * sizeof(float), bias + column, sizeof(float));
  }
}

size_t int4RowBytes(const Qb4Gemm& product) {
  // One cache line more than needed: rows of a power of two would share few sets of the cache.
  const size_t bytes = int4CorrectionsOffset(product) + product.blocks() * sizeof(int32_t);
  return (bytes + kLine - 1) / kLine * kLine + kLine;
}

void prepareInt4Row(const Qb4Gemm& product, const int8_t* numbers, uint8_t* prepared) {
  std::memcpy(prepared, numbers, product.inputs);
  auto* const sums = reinterpret_cast<int32_t*>(prepared + int4CorrectionsOffset(product));
  for (size_t b = 0; b < product.blocks(); ++b) {
    int32_t sum = 0;
    for (size_t i = 0; i < product.blockSize; ++i) sum += numbers[b * product.blockSize + i];
    sums[b] = -8 * sum;
  }
}

namespace {

// How many bytes ahead of their use weights are prefetched where only one pass reads them: a page,
// so that its address is translated in time, too.
constexpr size_t kAhead = 4096;

// The kernels for this CPU; null where there are none.
const Int4Tiles* tilesOfThisCpu() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("fma")) return nullptr;
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return &kVnniInt4Tiles;
  return __builtin_cpu_supports("avx2") ? &kAvx2Int4Tiles : nullptr;
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? &kNeonDotInt4Tiles : &kNeonInt4Tiles;
#else
  return nullptr;
#endif
}

const Int4Tiles* chosenTiles() {
  static const Int4Tiles* const tiles = tilesOfThisCpu();
  return tiles;
}

}  // namespace

bool hasInt4Product(size_t inputs, size_t blockSize) {
  return chosenTiles() != nullptr && blockSize != 0 && blockSize % kGroup == 0 &&
         blockSize <= kMostInBlock && inputs % blockSize == 0;
}

bool hasInt4ChannelProduct(size_t inputs) {
#if defined(__aarch64__)
  if (chosenTiles() == &kNeonInt4Tiles) return false;
#endif
  return hasInt4Product(inputs, inputs);
}

void multiplyInt4(const Qb4Gemm& product, const uint8_t* prepared,
                  const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                  size_t lastPanel, float* output) {
  const Int4Tiles& kernels = *chosenTiles();
  const auto& functions = product.areSumsWhole    ? kernels.wholeSums
                          : product.areScalesHalf ? kernels.halfScales
                                                  : kernels.floatScales;
  const size_t tiles = (rows + kernels.mostRows - 1) / kernels.mostRows;
  const size_t panelBytes = product.panelBytes();
  Int4Tile tile;
  // The next weights are prefetched while these are in use, a few with each tile: all at once would
  // fill the queues.
  tile.aheadStep = rows == 1 ? product.blockBytes()
                             : (panelBytes / tiles + product.blocks() - 1) / product.blocks();
  for (size_t panel = firstPanel; panel < lastPanel; ++panel) {
    tile.panel = product.packed + panel * panelBytes;
    tile.columns = product.columns - panel * kInt4Columns;
    for (size_t t = 0; t < tiles; ++t) {
      // Tiles have nearly equal numbers of rows.
      const size_t row = t * rows / tiles;
      const size_t count = (t + 1) * rows / tiles - row;
      tile.rows = prepared + row * int4RowBytes(product);
      tile.parameters = parameters + row;
      tile.ahead = tile.panel + (rows == 1 ? kAhead : panelBytes + t * panelBytes / tiles);
      tile.output = output + row * product.outputStride + panel * kInt4Columns;
      functions[count - 1](product, tile);
    }
  }
}

}  // namespace hearth::cpu
