// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "drivers/cpu/microkernels/arm/neon_int4_tile.h"

#if defined(__aarch64__)
#define HEARTH_INT4_NEON_DOT __attribute__((target("+dotprod")))

namespace hearth::cpu {
namespace {

// The sums of a block take half of the 32 registers.
constexpr size_t kMostDotRows = 4;

struct DotProducts {
  template <size_t kRows>
  HEARTH_INT4_NEON_DOT static inline void addBlock(NeonInt4Block block, NeonInt4Sums<kRows>& sums) {
    for (size_t g = 0; g < block.groups; ++g) {
      block.prefetch();
      int8x16_t first[kNeonInt4Vectors];
      int8x16_t second[kNeonInt4Vectors];
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
        const uint8x16_t both = vld1q_u8(block.weights + v * sizeof both);
        first[v] = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15)));
        second[v] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const int8x8_t inputs = vreinterpret_s8_u8(vld1_u8(block.rows + r * block.stride));
#pragma GCC unroll 4
        for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
          sums[r][v] = vdotq_lane_s32(sums[r][v], first[v], inputs, 0);
          sums[r][v] = vdotq_lane_s32(sums[r][v], second[v], inputs, 1);
        }
      }
      block.rows += kInt4Group;
      block.weights += kInt4Line;
    }
  }
};

template <NeonInt4Form kForm, size_t kRows>
HEARTH_INT4_NEON_DOT __attribute__((flatten)) void multiplyDotTile(const Qb4Gemm& product,
                                                                   const Int4Tile& tile) {
  multiplyNeonInt4Tile<DotProducts, kForm, kRows>(product, tile);
}

template <NeonInt4Form kForm, size_t... kIndex>
constexpr Int4Tiles::Functions dotTiles(std::index_sequence<kIndex...>) {
  return {multiplyDotTile<kForm, kIndex + 1>...};
}

using DotIndices = std::make_index_sequence<kMostDotRows>;

}  // namespace

const Int4Tiles kNeonDotInt4Tiles = {kMostDotRows,
                                     dotTiles<NeonInt4Form::kFloatScales>(DotIndices()),
                                     dotTiles<NeonInt4Form::kHalfScales>(DotIndices()),
                                     dotTiles<NeonInt4Form::kWholeSums>(DotIndices())};

}  // namespace hearth::cpu

#endif
