// SPDX-License-Identifier: Apache-2.0
#include "threads/pthreadpool_functions.h"

#include <array>

#include "threads/gemm_order.h"
#include "threads/grid.h"

namespace hearth::threads {
namespace {

ThreadPool* fromHandle(pthreadpool_t pool) {
  return reinterpret_cast<ThreadPool*>(pool);
}

template <size_t kDims, size_t kTiled, TaskPlace kPlace, typename Task>
void runGrid(pthreadpool_t pool, Task task, void* context, std::array<size_t, kDims> ranges,
             std::array<size_t, kTiled> tiles, uint32_t flags, CoreKinds cores = {}) {
  Grid<kDims, kTiled, kPlace, Task>(task, context, ranges, tiles, cores)
      .run(fromHandle(pool), flags);
}

// A call over rows x columns, with `ranges` products before them, if the hint in force is about it.
// Task takes one index per product dimension, then those of the tile.
template <size_t kOuter, typename Task>
bool runHinted(pthreadpool_t pool, Task task, void* context, std::array<size_t, kOuter> ranges,
               size_t rows, size_t columns, size_t rowTile, size_t columnTile, uint32_t flags) {
  const GemmHint* hint = currentGemmHint();
  if (hint == nullptr || hint->columns != columns) return false;
  struct Call {
    Task task;
    void* context;
    std::array<size_t, kOuter> ranges;
  } call{task, context, ranges};
  GemmGrid grid{1, rows, columns, rowTile, columnTile};
  for (size_t range : ranges) grid.outer *= range;
  runGemm(
      fromHandle(pool), grid, *hint,
      [](const void* opaque, size_t outer, size_t row, size_t column, size_t tileRows,
         size_t tileColumns) {
        const Call& tile = *static_cast<const Call*>(opaque);
        if constexpr (kOuter == 0) {
          tile.task(tile.context, row, column, tileRows, tileColumns);
        } else if constexpr (kOuter == 1) {
          tile.task(tile.context, outer, row, column, tileRows, tileColumns);
        } else {
          tile.task(tile.context, outer / tile.ranges[1], outer % tile.ranges[1], row, column,
                    tileRows, tileColumns);
        }
      },
      &call, flags);
  return true;
}

}  // namespace
}  // namespace hearth::threads

using hearth::threads::runGrid;
using hearth::threads::runHinted;
using hearth::threads::TaskPlace;

size_t hearth_pthreadpool_get_threads_count(pthreadpool_t pool) {
  return pool == nullptr ? 1 : hearth::threads::fromHandle(pool)->threadCount();
}

void hearth_pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task,
                                       void* context, size_t range, uint32_t flags) {
  runGrid<1, 0, TaskPlace::kNone>(pool, task, context, {range}, {}, flags);
}

void hearth_pthreadpool_parallelize_1d_tile_1d(pthreadpool_t pool,
                                               pthreadpool_task_1d_tile_1d_t task, void* context,
                                               size_t range, size_t tile, uint32_t flags) {
  runGrid<1, 1, TaskPlace::kNone>(pool, task, context, {range}, {tile}, flags);
}

void hearth_pthreadpool_parallelize_1d_with_thread(pthreadpool_t pool,
                                                   pthreadpool_task_1d_with_thread_t task,
                                                   void* context, size_t range, uint32_t flags) {
  runGrid<1, 0, TaskPlace::kThread>(pool, task, context, {range}, {}, flags);
}

void hearth_pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task,
                                       void* context, size_t rangeI, size_t rangeJ,
                                       uint32_t flags) {
  runGrid<2, 0, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ}, {}, flags);
}

void hearth_pthreadpool_parallelize_2d_tile_1d(pthreadpool_t pool,
                                               pthreadpool_task_2d_tile_1d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t tileJ,
                                               uint32_t flags) {
  runGrid<2, 1, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ}, {tileJ}, flags);
}

void hearth_pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_2d_tile_2d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t tileI,
                                               size_t tileJ, uint32_t flags) {
  if (runHinted<0>(pool, task, context, {}, rangeI, rangeJ, tileI, tileJ, flags)) return;
  runGrid<2, 2, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ}, {tileI, tileJ}, flags);
}

void hearth_pthreadpool_parallelize_2d_with_thread(pthreadpool_t pool,
                                                   pthreadpool_task_2d_with_thread_t task,
                                                   void* context, size_t rangeI, size_t rangeJ,
                                                   uint32_t flags) {
  runGrid<2, 0, TaskPlace::kThread>(pool, task, context, {rangeI, rangeJ}, {}, flags);
}

void hearth_pthreadpool_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task,
                                       void* context, size_t rangeI, size_t rangeJ, size_t rangeK,
                                       uint32_t flags) {
  runGrid<3, 0, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK}, {}, flags);
}

void hearth_pthreadpool_parallelize_3d_tile_1d(pthreadpool_t pool,
                                               pthreadpool_task_3d_tile_1d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t rangeK,
                                               size_t tileK, uint32_t flags) {
  runGrid<3, 1, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileK}, flags);
}

void hearth_pthreadpool_parallelize_3d_tile_1d_with_thread(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_thread_t task, void* context,
    size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK, uint32_t flags) {
  runGrid<3, 1, TaskPlace::kThread>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileK}, flags);
}

void hearth_pthreadpool_parallelize_3d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_3d_tile_2d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t rangeK,
                                               size_t tileJ, size_t tileK, uint32_t flags) {
  if (runHinted<1>(pool, task, context, {rangeI}, rangeJ, rangeK, tileJ, tileK, flags)) return;
  runGrid<3, 2, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileJ, tileK},
                                  flags);
}

void hearth_pthreadpool_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task,
                                       void* context, size_t rangeI, size_t rangeJ, size_t rangeK,
                                       size_t rangeL, uint32_t flags) {
  runGrid<4, 0, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK, rangeL}, {}, flags);
}

void hearth_pthreadpool_parallelize_4d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_4d_tile_2d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t rangeK,
                                               size_t rangeL, size_t tileK, size_t tileL,
                                               uint32_t flags) {
  if (runHinted<2>(pool, task, context, {rangeI, rangeJ}, rangeK, rangeL, tileK, tileL, flags))
    return;
  runGrid<4, 2, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK, rangeL},
                                  {tileK, tileL}, flags);
}

void hearth_pthreadpool_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task,
                                       void* context, size_t rangeI, size_t rangeJ, size_t rangeK,
                                       size_t rangeL, size_t rangeM, uint32_t flags) {
  runGrid<5, 0, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK, rangeL, rangeM}, {},
                                  flags);
}

void hearth_pthreadpool_parallelize_5d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_5d_tile_2d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t rangeK,
                                               size_t rangeL, size_t rangeM, size_t tileL,
                                               size_t tileM, uint32_t flags) {
  runGrid<5, 2, TaskPlace::kNone>(pool, task, context, {rangeI, rangeJ, rangeK, rangeL, rangeM},
                                  {tileL, tileM}, flags);
}

void hearth_pthreadpool_parallelize_6d_tile_2d(pthreadpool_t pool,
                                               pthreadpool_task_6d_tile_2d_t task, void* context,
                                               size_t rangeI, size_t rangeJ, size_t rangeK,
                                               size_t rangeL, size_t rangeM, size_t rangeN,
                                               size_t tileM, size_t tileN, uint32_t flags) {
  runGrid<6, 2, TaskPlace::kNone>(
      pool, task, context, {rangeI, rangeJ, rangeK, rangeL, rangeM, rangeN}, {tileM, tileN}, flags);
}

void hearth_pthreadpool_parallelize_2d_tile_1d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_2d_tile_1d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t tileJ,
    uint32_t flags) {
  runGrid<2, 1, TaskPlace::kCore>(pool, task, context, {rangeI, rangeJ}, {tileJ}, flags,
                                  {fallback, greatest});
}

void hearth_pthreadpool_parallelize_2d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_2d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t tileI, size_t tileJ,
    uint32_t flags) {
  runGrid<2, 2, TaskPlace::kCore>(pool, task, context, {rangeI, rangeJ}, {tileI, tileJ}, flags,
                                  {fallback, greatest});
}

void hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK,
    uint32_t flags) {
  runGrid<3, 1, TaskPlace::kCore>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileK}, flags,
                                  {fallback, greatest});
}

void hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_with_thread_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK,
    uint32_t flags) {
  runGrid<3, 1, TaskPlace::kCoreAndThread>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileK},
                                           flags, {fallback, greatest});
}

void hearth_pthreadpool_parallelize_3d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_3d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileJ,
    size_t tileK, uint32_t flags) {
  runGrid<3, 2, TaskPlace::kCore>(pool, task, context, {rangeI, rangeJ, rangeK}, {tileJ, tileK},
                                  flags, {fallback, greatest});
}

void hearth_pthreadpool_parallelize_4d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_4d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK,
    size_t rangeL, size_t tileK, size_t tileL, uint32_t flags) {
  runGrid<4, 2, TaskPlace::kCore>(pool, task, context, {rangeI, rangeJ, rangeK, rangeL},
                                  {tileK, tileL}, flags, {fallback, greatest});
}
