// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/amx_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/cpu/microkernels/vnni_vectors.h"
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

namespace {

using Vector = WholeVector;

// The tiles of the processor, all of 16 rows of 64 bytes: four of sums, one of inputs, and three
// that take weights in turn.
constexpr int kInputs = 4;
constexpr int kFirstWeights = 5;
constexpr int kWeightTiles = 3;

// Bytes from one group of a panel's inputs to the next.
constexpr size_t kGroupBytes = kAmxColumns * kAmxGroup;
constexpr size_t kGroupsPerBlock = kAmxInputs / kAmxGroup;

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
template <int kSums, int kWeights>
[[gnu::always_inline]] inline void addProducts() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kInputs), "i"(kWeights));
}

// Calls function.template operator()<0>() to <kCount - 1>().
template <size_t kCount, typename Function>
[[gnu::always_inline]] inline void forTiles(const Function& function) {
  if constexpr (kCount > 0) function.template operator()<0>();
  if constexpr (kCount > 1) function.template operator()<1>();
  if constexpr (kCount > 2) function.template operator()<2>();
  if constexpr (kCount > 3) function.template operator()<3>();
}

// How the sums of a panel become steps.
template <size_t kTiles>
struct Rounding {
  Vector::Floats factors[kTiles];
  Vector::Floats ceiling;
  Vector::Ints zeroWords, lowestBytes, order;
};

template <size_t kTiles>
HEARTH_VNNI Rounding<kTiles> roundingOf(const AmxGemm& product, const uint8_t* panel) {
  Rounding<kTiles> rounding;
  const uint8_t* const factors = panel + product.panelBytes() - kAmxColumns * sizeof(float);
#pragma GCC unroll 4
  for (size_t t = 0; t < kTiles; ++t)
    rounding.factors[t] = Vector::loadFloats(factors + t * Vector::kBytes);
  rounding.ceiling = Vector::ofFloats(static_cast<float>(product.highest - product.outputZero));
  rounding.zeroWords = Vector::ofWords(static_cast<int16_t>(product.outputZero));
  rounding.lowestBytes = Vector::ofBytes(static_cast<int8_t>(product.lowest));
  // Narrowing puts 4 bytes of each tile next to each other; this restores the order of columns.
  rounding.order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return rounding;
}

// Writes the first `columns` columns of 16 rows at `column`; `sums` has the tiles one behind the
// other.
template <size_t kTiles>
HEARTH_VNNI void writeRows(const Rounding<kTiles>& rounding, const int32_t* sums,
                           const AmxTile& tile, size_t column, size_t columns) {
  int8_t unwanted[kAmxColumns];
#pragma GCC unroll 4
  for (size_t r = 0; r < kAmxRows; ++r) {
    Vector::Ints steps[4];
#pragma GCC unroll 4
    for (size_t t = 0; t < 4; ++t)
      steps[t] = t < kTiles ? Vector::scaled(Vector::load(sums + (t * kAmxRows + r) * 16),
                                             rounding.factors[t < kTiles ? t : 0], rounding.ceiling)
                            : steps[0];
    const Vector::Ints bytes = _mm512_permutexvar_epi32(
        rounding.order, Vector::narrowed(steps, rounding.zeroWords, rounding.lowestBytes));
    int8_t* const to = tile.outputs[r] == nullptr ? unwanted : tile.outputs[r] + column;
    if (kTiles == 4 && columns >= kAmxColumns)
      Vector::store(to, bytes);
    else
      Vector::store(to, bytes, columns);
  }
}

// Multiplies tiles by the first kTiles tiles of a panel; `columns` of them are wanted.
template <size_t kTiles>
HEARTH_VNNI_FUNCTION void multiplyPanel(const AmxGemm& product, std::span<const AmxTile> tiles,
                                        size_t stride, std::span<const size_t> offsets,
                                        size_t panel, size_t columns) {
  const uint8_t* const packed = product.packed + panel * product.panelBytes();
  const uint8_t* const weights = packed + kAmxColumns * sizeof(int32_t);
  const size_t wholeBlocks = product.inputs / kAmxInputs;
  const size_t rest = product.inputs % kAmxInputs / kAmxGroup;
  // The last weights, with zeros for the inputs behind those of the product.
  alignas(64) uint8_t lastWeights[kGroupsPerBlock * kGroupBytes];
  if (rest > 0) {
    std::memcpy(lastWeights, weights + wholeBlocks * sizeof lastWeights, rest * kGroupBytes);
    std::memset(lastWeights + rest * kGroupBytes, 0, sizeof lastWeights - rest * kGroupBytes);
  }
  alignas(64) int32_t sums[kTiles * kAmxRows * 16];
  const Rounding<kTiles> rounding = roundingOf<kTiles>(product, packed);
  const AmxTile* previous = nullptr;
  for (const AmxTile& tile : tiles) {
    // Every row begins with the biases.
    forTiles<kTiles>([&]<int kTile> { loadTile<kTile>(packed + kTile * Vector::kBytes, 0); });
    for (size_t block = 0; block < product.blocks(); ++block) {
      const uint8_t* const from =
          block < wholeBlocks ? weights + block * sizeof lastWeights : lastWeights;
      loadTile<kInputs>(tile.rows + offsets[block], stride);
      forTiles<kTiles>([&]<int kTile> {
        constexpr int kWeights = kFirstWeights + kTile % kWeightTiles;
        loadTile<kWeights>(from + kTile * Vector::kBytes, kGroupBytes);
        addProducts<kTile, kWeights>();
      });
    }
    // The former sums are rounded while these products are computed.
    if (previous != nullptr)
      writeRows<kTiles>(rounding, sums, *previous, panel * kAmxColumns, columns);
    forTiles<kTiles>([&]<int kTile> { storeTile<kTile>(sums + kTile * kAmxRows * 16, 64); });
    previous = &tile;
  }
  if (previous != nullptr)
    writeRows<kTiles>(rounding, sums, *previous, panel * kAmxColumns, columns);
}

using PanelFunction = decltype(multiplyPanel<1>);

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
  static constexpr std::array<PanelFunction*, 4> kMultiply = {multiplyPanel<1>, multiplyPanel<2>,
                                                              multiplyPanel<3>, multiplyPanel<4>};
  const TileConfiguration configuration;
  asm volatile("ldtilecfg %0" : : "m"(configuration));
  for (size_t panel = firstPanel; panel < lastPanel; ++panel) {
    const size_t columns = std::min(kAmxColumns, product.columns - panel * kAmxColumns);
    kMultiply[(columns - 1) / 16](product, tiles, stride, offsets, panel, columns);
  }
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
