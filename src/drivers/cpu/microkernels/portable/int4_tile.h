// SPDX-License-Identifier: Apache-2.0
// The inner kernels of Qb4Gemm: a few prepared rows times one panel, by instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/portable/qd8_f32_qb4w_gemm.h"

namespace hearth::cpu {

inline constexpr size_t kInt4Group = 8;  // inputs that lie together
inline constexpr size_t kInt4Line = 64;
// What stands before the blocks of a panel.
inline constexpr size_t kInt4HeadBytes = 2 * kInt4Columns * sizeof(float);

// Where the corrections of a prepared row lie.
inline size_t int4CorrectionsOffset(const Qb4Gemm& product) {
  return (product.inputs + kInt4Line - 1) / kInt4Line * kInt4Line;
}

// The rows of one call, and one panel.
struct Int4Tile {
  const uint8_t* rows = nullptr;
  const struct xnn_quantization_params* parameters = nullptr;
  const uint8_t* panel = nullptr;
  // Weights to prefetch meanwhile, `aheadStep` bytes for each block.
  const uint8_t* ahead = nullptr;
  size_t aheadStep = 0;
  size_t columns = 0;
  float* output = nullptr;
};

using Int4TileFunction = void (*)(const Qb4Gemm&, const Int4Tile&);

// The kernels of one set of instructions.
struct Int4Tiles {
  // By the number of rows, less one.
  using Functions = std::array<Int4TileFunction, kInt4Rows>;

  size_t mostRows = 0;
  Functions floatScales{};
  Functions halfScales{};
  Functions wholeSums{};
};

#if defined(__x86_64__)
extern const Int4Tiles kVnniInt4Tiles;
extern const Int4Tiles kAvx2Int4Tiles;
#elif defined(__aarch64__)
extern const Int4Tiles kNeonDotInt4Tiles;
extern const Int4Tiles kNeonInt4Tiles;
#endif

}  // namespace hearth::cpu
