// SPDX-License-Identifier: Apache-2.0
// Maps pthreadpool's grids to linear ranges of the pool. Internal to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "threads/core_kinds.h"
#include "threads/thread_pool.h"

namespace hearth::threads {

// Runs on a pool, or on the calling thread for a null pool.
inline void runOn(ThreadPool* pool, size_t count, ThreadPool::RangeFunction function, void* context,
                  uint32_t flags) {
  if (pool == nullptr) {
    ThreadPool::runSerially(count, function, context, flags);
  } else {
    pool->run(count, function, context, flags);
  }
}

inline size_t tileCount(size_t range, size_t tile) {
  return range / tile + (range % tile != 0 ? 1 : 0);
}

// What a task is told about where it runs, before the place in the grid.
enum class TaskPlace { kNone, kThread, kCore, kCoreAndThread };

// A grid of kDims dimensions, the last kTiled of them cut into tiles; the last dimension runs
// fastest. Task takes (context, [kind of core,] [thread,] start of each dimension, size of each
// tile).
template <size_t kDims, size_t kTiled, TaskPlace kPlace, typename Task>
class Grid {
 public:
  Grid(Task task, void* context, std::array<size_t, kDims> ranges, std::array<size_t, kTiled> tiles,
       CoreKinds cores = {})
      : task_(task), context_(context), ranges_(ranges), cores_(cores) {
    steps_.fill(1);
    for (size_t t = 0; t < kTiled; ++t) steps_[kDims - kTiled + t] = std::max<size_t>(1, tiles[t]);
    for (size_t d = 0; d < kDims; ++d) total_ *= tileCount(ranges_[d], steps_[d]);
  }

  void run(ThreadPool* pool, uint32_t flags) {
    runOn(
        pool, total_,
        [](void* grid, size_t thread, size_t begin, size_t end) {
          static_cast<const Grid*>(grid)->runRange(thread, begin, end);
        },
        this, flags);
  }

 private:
  void runRange(size_t thread, size_t begin, size_t end) const {
    std::array<size_t, kDims> start;
    size_t rest = begin;
    for (size_t d = kDims; d-- > 0;) {
      const size_t tiles = tileCount(ranges_[d], steps_[d]);
      start[d] = rest % tiles * steps_[d];
      rest /= tiles;
    }
    for (size_t item = begin; item < end; ++item) {
      call(thread, start, std::make_index_sequence<kDims>(), std::make_index_sequence<kTiled>());
      for (size_t d = kDims; d-- > 0;) {
        start[d] += steps_[d];
        if (start[d] < ranges_[d]) break;
        start[d] = 0;
      }
    }
  }

  template <size_t... kDim, size_t... kTile>
  void call(size_t thread, const std::array<size_t, kDims>& start, std::index_sequence<kDim...>,
            std::index_sequence<kTile...>) const {
    constexpr size_t kPlain = kDims - kTiled;
    const auto run = [&](auto... place) {
      task_(context_, place..., start[kDim]...,
            std::min(ranges_[kPlain + kTile] - start[kPlain + kTile], steps_[kPlain + kTile])...);
    };
    if constexpr (kPlace == TaskPlace::kNone) run();
    if constexpr (kPlace == TaskPlace::kThread) run(thread);
    if constexpr (kPlace == TaskPlace::kCore) run(cores_.current());
    if constexpr (kPlace == TaskPlace::kCoreAndThread) run(cores_.current(), thread);
  }

  Task task_;
  void* context_;
  std::array<size_t, kDims> ranges_;
  std::array<size_t, kDims> steps_;
  CoreKinds cores_;
  size_t total_ = 1;
};

}  // namespace hearth::threads
