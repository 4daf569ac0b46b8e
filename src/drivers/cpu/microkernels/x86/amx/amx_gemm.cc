// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/amx/amx_gemm.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

namespace {

using Vector = WholeVector;

// The tiles of the processor, all of 16 rows of 64 bytes: four of sums, which are those of two
// tiles of inputs and two of weights.
constexpr int kFirstInputs = 4;
constexpr int kFirstWeights = 6;
constexpr size_t kSide = 2;

constexpr size_t kTileColumns = 16;
constexpr size_t kHalfColumns = kSide * kTileColumns;
constexpr size_t kTileSums = kAmxRows * kTileColumns;

// Bytes from one group of a panel's inputs to the next.
constexpr size_t kGroupBytes = kAmxColumns * kAmxGroup;
constexpr size_t kBlockBytes = kAmxInputs / kAmxGroup * kGroupBytes;

// What LDTILECFG reads.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t firstRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The instructions are written out because the compiler's own forms do not say that they read
// memory.
template <int kTile>
[[gnu::always_inline]] inline void loadTile(const void* from, size_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(stride) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void storeTile(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(stride) : "memory");
}
// Adds to each sum the products of four signed inputs and weights.
template <int kSums, int kInputs, int kWeights>
[[gnu::always_inline]] inline void addProducts() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kInputs), "i"(kWeights));
}

// How the sums of up to 32 columns become steps.
struct Rounding {
  Vector::Floats factors[kSide];
  Vector::Floats ceiling;
  Vector::Ints zeroWords, lowestBytes, order;
};

HEARTH_VNNI Rounding roundingOf(const AmxGemm& product, const uint8_t* factors, size_t tiles) {
  Rounding rounding;
  rounding.factors[0] = Vector::loadFloats(factors);
  rounding.factors[1] = Vector::loadFloats(factors + (tiles - 1) * Vector::kBytes);
  rounding.ceiling = Vector::ofFloats(static_cast<float>(product.highest - product.outputZero));
  rounding.zeroWords = Vector::ofWords(static_cast<int16_t>(product.outputZero));
  rounding.lowestBytes = Vector::ofBytes(static_cast<int8_t>(product.lowest));
  // Narrowing puts 4 bytes of each tile next to each other; this restores the order of columns.
  rounding.order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return rounding;
}

// Writes the first `columns` columns of kHeight times 16 rows at `column`; `sums` has the tiles one
// behind the other, those of the first rows first.
template <size_t kHeight, size_t kWidth>
HEARTH_VNNI void writeRows(const Rounding& rounding, const int32_t* sums, const AmxTile* tiles,
                           size_t column, size_t columns) {
  int8_t unwanted[kHalfColumns];
  const __mmask32 mask = columns >= kHalfColumns ? ~__mmask32{0} : (__mmask32{1} << columns) - 1;
#pragma GCC unroll 4
  for (size_t r = 0; r < kAmxRows; ++r) {
    Vector::Ints steps[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const size_t t = i % kSide;
      const size_t tile = i / kSide * kWidth + t;
      steps[i] = i / kSide < kHeight && t < kWidth
                     ? Vector::scaled(Vector::load(sums + tile * kTileSums + r * kTileColumns),
                                      rounding.factors[t], rounding.ceiling)
                     : steps[0];
    }
    const Vector::Ints bytes = _mm512_permutexvar_epi32(
        rounding.order, Vector::narrowed(steps, rounding.zeroWords, rounding.lowestBytes));
    const __m256i halves[] = {_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1)};
#pragma GCC unroll 2
    for (size_t h = 0; h < kHeight; ++h) {
      int8_t* const to = tiles[h].outputs[r] == nullptr ? unwanted : tiles[h].outputs[r] + column;
      _mm256_mask_storeu_epi8(to, mask, halves[h]);
    }
  }
}

// The weights of up to 32 columns of a panel.
struct Weights {
  const uint8_t* whole;  // where those of the first block begin
  const uint8_t* last;   // those of a last block that is not whole, followed by zeros
  const uint8_t* biases;
  // Where those of the next columns begin, which are fetched meanwhile; null behind the last ones.
  const uint8_t* next;
};

// Cache lines of a block of the next weights to fetch while a pair of tiles passes the block.
struct Lines {
  size_t first, last;
};
constexpr size_t kLinesPerBlock = kAmxInputs / kAmxGroup * kSide;

// Computes the sums of kHeight tiles of inputs and kWidth tiles of weights.
template <size_t kHeight, size_t kWidth>
[[gnu::always_inline]] inline void multiplyTiles(const AmxGemm& product, const Weights& weights,
                                                 const AmxTile* tiles, size_t stride,
                                                 std::span<const size_t> offsets, Lines lines) {
  // Every row begins with the biases.
  loadTile<0>(weights.biases, 0);
  if constexpr (kWidth > 1) loadTile<1>(weights.biases + Vector::kBytes, 0);
  if constexpr (kHeight > 1) loadTile<2>(weights.biases, 0);
  if constexpr (kHeight > 1 && kWidth > 1) loadTile<3>(weights.biases + Vector::kBytes, 0);
  const size_t wholeBlocks = product.inputs / kAmxInputs;
  for (size_t block = 0; block < product.blocks(); ++block) {
    const uint8_t* const from =
        block < wholeBlocks ? weights.whole + block * kBlockBytes : weights.last;
    for (size_t line = lines.first; line < lines.last; ++line)
      _mm_prefetch(
          reinterpret_cast<const char*>(weights.next + block * kBlockBytes +
                                        line / kSide * kGroupBytes + line % kSide * Vector::kBytes),
          _MM_HINT_T1);
    loadTile<kFirstInputs>(tiles[0].rows + offsets[block], stride);
    loadTile<kFirstWeights>(from, kGroupBytes);
    addProducts<0, kFirstInputs, kFirstWeights>();
    if constexpr (kWidth > 1) {
      loadTile<kFirstWeights + 1>(from + Vector::kBytes, kGroupBytes);
      addProducts<1, kFirstInputs, kFirstWeights + 1>();
    }
    if constexpr (kHeight > 1) {
      loadTile<kFirstInputs + 1>(tiles[1].rows + offsets[block], stride);
      addProducts<2, kFirstInputs + 1, kFirstWeights>();
      if constexpr (kWidth > 1) addProducts<3, kFirstInputs + 1, kFirstWeights + 1>();
    }
  }
}

template <size_t kHeight, size_t kWidth>
[[gnu::always_inline]] inline void storeSums(int32_t* sums) {
  storeTile<0>(sums, Vector::kBytes);
  if constexpr (kWidth > 1) storeTile<1>(sums + kTileSums, Vector::kBytes);
  if constexpr (kHeight > 1) storeTile<2>(sums + kWidth * kTileSums, Vector::kBytes);
  if constexpr (kHeight > 1 && kWidth > 1) storeTile<3>(sums + 3 * kTileSums, Vector::kBytes);
}

// Multiplies tiles by kWidth tiles of weights; `columns` of them are wanted.
template <size_t kWidth>
HEARTH_VNNI_FUNCTION void multiplyColumns(const AmxGemm& product, const Weights& weights,
                                          const uint8_t* factors, std::span<const AmxTile> tiles,
                                          size_t stride, std::span<const size_t> offsets,
                                          size_t column, size_t columns) {
  alignas(64) int32_t sums[kSide * kSide * kTileSums];
  const Rounding rounding = roundingOf(product, factors, kWidth);
  const size_t pairs = tiles.size() / kSide;
  // With more rows than these, the time to read new weights matters less than that of prefetching.
  constexpr size_t kMostPairs = 8;
  const size_t ahead = weights.next == nullptr || pairs > kMostPairs ? 0 : kLinesPerBlock;
  for (size_t pair = 0; pair < pairs; ++pair) {
    multiplyTiles<kSide, kWidth>(product, weights, &tiles[pair * kSide], stride, offsets,
                                 {pair * ahead / pairs, (pair + 1) * ahead / pairs});
    // The former sums are rounded while these products are computed.
    if (pair > 0)
      writeRows<kSide, kWidth>(rounding, sums, &tiles[(pair - 1) * kSide], column, columns);
    storeSums<kSide, kWidth>(sums);
  }
  const bool isOdd = tiles.size() % kSide != 0;
  if (isOdd) multiplyTiles<1, kWidth>(product, weights, &tiles.back(), stride, offsets, {0, 0});
  if (pairs > 0)
    writeRows<kSide, kWidth>(rounding, sums, &tiles[(pairs - 1) * kSide], column, columns);
  if (!isOdd) return;
  storeSums<1, kWidth>(sums);
  writeRows<1, kWidth>(rounding, sums, &tiles.back(), column, columns);
}

void multiplyPanel(const AmxGemm& product, std::span<const AmxTile> tiles, size_t stride,
                   std::span<const size_t> offsets, size_t panel, size_t lastPanel) {
  const uint8_t* const biases = product.packed + panel * product.panelBytes();
  const uint8_t* const whole = biases + kAmxColumns * sizeof(int32_t);
  const uint8_t* const factors = whole + kAmxColumns * product.inputs;
  alignas(64) uint8_t last[kBlockBytes];
  const size_t rest = product.inputs % kAmxInputs / kAmxGroup * kGroupBytes;
  if (rest > 0) {
    std::memcpy(last, whole + product.inputs / kAmxInputs * kBlockBytes, rest);
    std::memset(last + rest, 0, kBlockBytes - rest);
  }
  const size_t end = std::min(kAmxColumns, product.columns - panel * kAmxColumns);
  for (size_t column = 0; column < end; column += kHalfColumns) {
    const size_t at = column * sizeof(int32_t);
    const uint8_t* next = whole + at + kSide * Vector::kBytes;
    if (column + kHalfColumns >= end)
      next = panel + 1 < lastPanel ? whole + product.panelBytes() : nullptr;
    const Weights weights = {whole + at, last + at, biases + at, next};
    const auto multiply = end - column > kTileColumns ? multiplyColumns<kSide> : multiplyColumns<1>;
    multiply(product, weights, factors + at, tiles, stride, offsets, panel * kAmxColumns + column,
             end - column);
  }
}

// Asks the system for the tiles' state, which makes the registers of a thread 8 KiB larger.
bool mayUseTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool cpuHasAmxGemm() {
  static const bool has =
      __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && mayUseTiles();
  return has;
}

void multiplyAmx(const AmxGemm& product, std::span<const AmxTile> tiles, size_t stride,
                 std::span<const size_t> offsets, size_t firstPanel, size_t lastPanel) {
  const TileConfiguration configuration;
  asm volatile("ldtilecfg %0" : : "m"(configuration));
  for (size_t panel = firstPanel; panel < lastPanel; ++panel)
    multiplyPanel(product, tiles, stride, offsets, panel, lastPanel);
  // The system saves the tiles of a thread until they are released.
  asm volatile("tilerelease");
}

#else

bool cpuHasAmxGemm() {
  return false;
}
void multiplyAmx(const AmxGemm&, std::span<const AmxTile>, size_t, std::span<const size_t>, size_t,
                 size_t) {}

#endif

}  // namespace hearth::cpu
