// SPDX-License-Identifier: Apache-2.0
// The functions of <pthreadpool.h> that XNNPACK calls, implemented on ThreadPool, under names of
// our own, which the private copy of XNNPACK imports. `pool` is ThreadPool::nativeHandle(), or null
// to run everything on the calling thread; otherwise <pthreadpool.h> documents them.
#pragma once

#include <pthreadpool.h>

#include "threads/export.h"

extern "C" {

// 1 for a null pool.
HEARTH_THREADS_EXPORT size_t hearth_pthreadpool_get_threads_count(pthreadpool_t pool);

HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_1d(pthreadpool_t pool,
                                                             pthreadpool_task_1d_t task,
                                                             void* context, size_t range,
                                                             uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_1d_tile_1d(
    pthreadpool_t pool, pthreadpool_task_1d_tile_1d_t task, void* context, size_t range,
    size_t tile, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_1d_with_thread(
    pthreadpool_t pool, pthreadpool_task_1d_with_thread_t task, void* context, size_t range,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d(pthreadpool_t pool,
                                                             pthreadpool_task_2d_t task,
                                                             void* context, size_t rangeI,
                                                             size_t rangeJ, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d_tile_1d(
    pthreadpool_t pool, pthreadpool_task_2d_tile_1d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t tileJ, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d_tile_2d(
    pthreadpool_t pool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t tileI, size_t tileJ, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d_with_thread(
    pthreadpool_t pool, pthreadpool_task_2d_with_thread_t task, void* context, size_t rangeI,
    size_t rangeJ, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d(pthreadpool_t pool,
                                                             pthreadpool_task_3d_t task,
                                                             void* context, size_t rangeI,
                                                             size_t rangeJ, size_t rangeK,
                                                             uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_1d(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t rangeK, size_t tileK, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_1d_with_thread(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_thread_t task, void* context,
    size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_2d(
    pthreadpool_t pool, pthreadpool_task_3d_tile_2d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t rangeK, size_t tileJ, size_t tileK, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_4d(pthreadpool_t pool,
                                                             pthreadpool_task_4d_t task,
                                                             void* context, size_t rangeI,
                                                             size_t rangeJ, size_t rangeK,
                                                             size_t rangeL, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_4d_tile_2d(
    pthreadpool_t pool, pthreadpool_task_4d_tile_2d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t rangeK, size_t rangeL, size_t tileK, size_t tileL, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_5d(
    pthreadpool_t pool, pthreadpool_task_5d_t task, void* context, size_t rangeI, size_t rangeJ,
    size_t rangeK, size_t rangeL, size_t rangeM, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_5d_tile_2d(
    pthreadpool_t pool, pthreadpool_task_5d_tile_2d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t rangeK, size_t rangeL, size_t rangeM, size_t tileL, size_t tileM,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_6d_tile_2d(
    pthreadpool_t pool, pthreadpool_task_6d_tile_2d_t task, void* context, size_t rangeI,
    size_t rangeJ, size_t rangeK, size_t rangeL, size_t rangeM, size_t rangeN, size_t tileM,
    size_t tileN, uint32_t flags);

// The same for kernels that differ by the kind of core (core_kinds.h): XNNPACK calls them on ARM.
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d_tile_1d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_2d_tile_1d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t tileJ,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_2d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_2d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t tileI, size_t tileJ,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(
    pthreadpool_t pool, pthreadpool_task_3d_tile_1d_with_id_with_thread_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileK,
    uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_3d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_3d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK, size_t tileJ,
    size_t tileK, uint32_t flags);
HEARTH_THREADS_EXPORT void hearth_pthreadpool_parallelize_4d_tile_2d_with_uarch(
    pthreadpool_t pool, pthreadpool_task_4d_tile_2d_with_id_t task, void* context,
    uint32_t fallback, uint32_t greatest, size_t rangeI, size_t rangeJ, size_t rangeK,
    size_t rangeL, size_t tileK, size_t tileL, uint32_t flags);

}  // extern "C"
