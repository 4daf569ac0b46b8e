// SPDX-License-Identifier: Apache-2.0
#include "threads/gemm_order.h"

#include <algorithm>

#include "base/thread_local.h"
#include "threads/grid.h"

namespace hearth::threads {
namespace {

// Bytes of packed weights per block of columns: half of a second-level cache of 1 MiB, so that they
// stay there while all rows pass.
constexpr size_t kBlockBytes = 512 * 1024;

// Every packed layout repeats after a number of columns that divides this.
constexpr size_t kColumnUnit = 64;

// Fewer tasks than this per thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

HEARTH_THREAD_LOCAL const GemmHint* activeHint = nullptr;

struct GemmCall {
  GemmGrid grid;
  GemmTileFunction function;
  const void* task;
  size_t block;
  size_t rowTiles;
  bool splitTail;

  size_t columnBlocks() const { return tileCount(grid.columns, block); }
  // Row tiles that the main pass visits.
  size_t mainTiles() const { return rowTiles - (splitTail ? 1 : 0); }

  void visit(size_t outer, size_t columnBlock, size_t rowTile, size_t rows) const {
    const size_t column = columnBlock * block;
    function(task, outer, rowTile * grid.rowTile, column, rows,
             std::min(block, grid.columns - column));
  }

  void main(size_t begin, size_t end) const {
    size_t rowTile = begin % mainTiles();
    size_t columnBlock = begin / mainTiles() % columnBlocks();
    size_t outer = begin / mainTiles() / columnBlocks();
    for (size_t item = begin; item < end; ++item) {
      visit(outer, columnBlock, rowTile,
            std::min(grid.rowTile, grid.rows - rowTile * grid.rowTile));
      if (++rowTile < mainTiles()) continue;
      rowTile = 0;
      if (++columnBlock < columnBlocks()) continue;
      columnBlock = 0;
      ++outer;
    }
  }

  void tails(size_t begin, size_t end) const {
    for (size_t item = begin; item < end; ++item)
      visit(item / columnBlocks(), item % columnBlocks(), rowTiles - 1, 2);
  }
};

}  // namespace

GemmHintScope::GemmHintScope(const GemmHint& hint) : hint_(hint), outer_(activeHint) {
  activeHint = &hint_;
}

GemmHintScope::~GemmHintScope() {
  activeHint = outer_;
}

const GemmHint* currentGemmHint() {
  return activeHint;
}

size_t chooseColumnBlock(const GemmGrid& grid, const GemmHint& hint, size_t threads) {
  const size_t given = std::max<size_t>(1, grid.columnTile);
  if (hint.packedBytesPerColumn == 0) return given;
  // A tile smaller than the range is a multiple of the packed layout's width.
  const size_t unit = given < grid.columns ? std::min(given, kColumnUnit) : kColumnUnit;
  if (grid.columns <= unit) return grid.columns;

  const size_t rowTiles = tileCount(grid.rows, grid.rowTile);
  const size_t units = tileCount(grid.columns, unit);
  size_t blocks = 1;
  // Weights have to fit into the cache only if several tiles of rows read them.
  if (rowTiles > 1) {
    const size_t columnsInCache = std::max(unit, kBlockBytes / hint.packedBytesPerColumn);
    blocks = tileCount(grid.columns, columnsInCache);
  }
  if (threads > 1) {
    const size_t perBlock = rowTiles * std::max<size_t>(1, grid.outer);
    blocks = std::max(blocks, tileCount(threads * kTasksPerThread, perBlock));
  }
  blocks = std::min(blocks, units);
  return tileCount(units, blocks) * unit;
}

void runGemm(ThreadPool* pool, const GemmGrid& grid, const GemmHint& hint,
             GemmTileFunction function, const void* task, uint32_t flags) {
  if (grid.rows == 0 || grid.columns == 0 || grid.outer == 0) return;
  GemmCall call{grid, function, task, 0, 0, false};
  call.grid.rowTile = std::max<size_t>(1, grid.rowTile);
  call.block = chooseColumnBlock(call.grid, hint, pool == nullptr ? 1 : pool->threadCount());
  call.rowTiles = tileCount(grid.rows, call.grid.rowTile);
  call.splitTail = hint.guardOneRowTail && call.rowTiles > 1 && grid.rows % call.grid.rowTile == 1;
  if (call.splitTail) {
    // Tails run first: the spare row behind one image is the first row of the next one.
    runOn(
        pool, grid.outer * call.columnBlocks(),
        [](void* context, size_t, size_t begin, size_t end) {
          static_cast<const GemmCall*>(context)->tails(begin, end);
        },
        &call, flags);
  }
  runOn(
      pool, grid.outer * call.columnBlocks() * call.mainTiles(),
      [](void* context, size_t, size_t begin, size_t end) {
        static_cast<const GemmCall*>(context)->main(begin, end);
      },
      &call, flags);
}

}  // namespace hearth::threads
