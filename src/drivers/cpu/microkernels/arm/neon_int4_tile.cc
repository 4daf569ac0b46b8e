// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/arm/neon_int4_tile.h"

#include <utility>

#if defined(__aarch64__)

namespace hearth::cpu {
namespace {

// Two rows have 16 sums of 16 bits and 8 of 32 bits, in 32 registers.
constexpr size_t kMostWidenedRows = 2;
// A column's sum of 16 bits gets two products of each group, which are 128 * 15 at most, and the
// last step adds two such sums.
constexpr size_t kGroupsBetweenSteps = 4;
static_assert(kGroupsBetweenSteps * 2 * 2 * 128 * 15 <= INT16_MAX);

// For processors without dot product: 8-bit numbers are multiplied to 16 bits, and added up in
// pairs.
struct WidenedProducts {
  template <size_t kRows>
  static inline void addBlock(NeonInt4Block block, NeonInt4Sums<kRows>& sums) {
    for (size_t left = block.groups; left > 0;) {
      const size_t groups = std::min(left, kGroupsBetweenSteps);
      left -= groups;
      // By row and vector: of the first two columns, and of the last two.
      int16x8_t halves[kRows][kNeonInt4Vectors][2] = {};
      for (size_t g = 0; g < groups; ++g) {
        block.prefetch();
        addGroup<kRows>(block, halves);
        block.rows += kInt4Group;
        block.weights += kInt4Line;
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kNeonInt4Vectors; ++v)
          sums[r][v] = vpadalq_s16(sums[r][v], vpaddq_s16(halves[r][v][0], halves[r][v][1]));
      }
    }
  }

 private:
  // The four bytes at an address, four times.
  static inline int8x16_t repeated(const uint8_t* bytes) {
    int32_t number;
    std::memcpy(&number, bytes, sizeof number);
    return vreinterpretq_s8_s32(vdupq_n_s32(number));
  }

  template <size_t kRows>
  static inline void addGroup(const NeonInt4Block& block,
                              int16x8_t (&halves)[kRows][kNeonInt4Vectors][2]) {
    int8x16_t inputs[kRows][2];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const uint8_t* const row = block.rows + r * block.stride;
      inputs[r][0] = repeated(row);
      inputs[r][1] = repeated(row + kInt4Group / 2);
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
      const uint8x16_t both = vld1q_u8(block.weights + v * sizeof both);
      const int8x16_t weights[2] = {vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))),
                                    vreinterpretq_s8_u8(vshrq_n_u8(both, 4))};
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        int16x8_t(&sums)[2] = halves[r][v];
#pragma GCC unroll 2
        for (size_t i = 0; i < 2; ++i) {
          sums[0] = vmlal_s8(sums[0], vget_low_s8(weights[i]), vget_low_s8(inputs[r][i]));
          sums[1] = vmlal_high_s8(sums[1], weights[i], inputs[r][i]);
        }
      }
    }
  }
};

template <NeonInt4Form kForm, size_t kRows>
__attribute__((flatten)) void multiplyWidenedTile(const Qb4Gemm& product, const Int4Tile& tile) {
  multiplyNeonInt4Tile<WidenedProducts, kForm, kRows>(product, tile);
}

template <NeonInt4Form kForm, size_t... kIndex>
constexpr Int4Tiles::Functions widenedTiles(std::index_sequence<kIndex...>) {
  return {multiplyWidenedTile<kForm, kIndex + 1>...};
}

using WidenedIndices = std::make_index_sequence<kMostWidenedRows>;

}  // namespace

const Int4Tiles kNeonInt4Tiles = {kMostWidenedRows,
                                  widenedTiles<NeonInt4Form::kFloatScales>(WidenedIndices()),
                                  widenedTiles<NeonInt4Form::kHalfScales>(WidenedIndices()),
                                  widenedTiles<NeonInt4Form::kWholeSums>(WidenedIndices())};

}  // namespace hearth::cpu

#endif
