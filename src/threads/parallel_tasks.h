// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "threads/thread_pool.h"

namespace hearth::threads {

// Number of threads that forTasks() uses: those of `pool`, or 1 if that is null.
inline size_t threadsOf(const ThreadPool* pool) {
  return pool == nullptr ? 1 : pool->threadCount();
}

// Calls fn(task, thread) for each task below `count` on the threads of `pool` (null: on the calling
// thread). No two tasks run at the same time with the same `thread`, which is below
// threadsOf(pool).
template <typename Function>
void forTasks(ThreadPool* pool, size_t count, const Function& fn) {
  if (pool != nullptr) return pool->parallelFor(count, fn);
  for (size_t task = 0; task < count; ++task) fn(task, size_t{0});
}

}  // namespace hearth::threads
