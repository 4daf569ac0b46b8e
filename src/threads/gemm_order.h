// SPDX-License-Identifier: Apache-2.0
// The order in which the tiles of a matrix product are visited. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "threads/gemm_hint.h"
#include "threads/thread_pool.h"

namespace hearth::threads {

// `outer` products of the same kind (images or groups), of rows x columns. Row tiles are never
// changed: the layout of XNNPACK's indirection buffer depends on them.
struct GemmGrid {
  size_t outer = 1, rows = 0, columns = 0;
  size_t rowTile = 1, columnTile = 1;
};

// Columns per block for `threads` threads: `grid.columns`, or a multiple of 64, or of
// `grid.columnTile` where that is smaller. So every block begins at a packed block of weights.
size_t chooseColumnBlock(const GemmGrid& grid, const GemmHint& hint, size_t threads);

// Called once per tile; `outer` in [0, grid.outer).
using GemmTileFunction = void (*)(const void* task, size_t outer, size_t row, size_t column,
                                  size_t rows, size_t columns);

// Visits all tiles in the hint's order. `pool` may be null.
void runGemm(ThreadPool* pool, const GemmGrid& grid, const GemmHint& hint,
             GemmTileFunction function, const void* task, uint32_t flags);

}  // namespace hearth::threads
