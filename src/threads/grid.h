// SPDX-License-Identifier: Apache-2.0
// Maps pthreadpool's grids to linear ranges of the pool. Internal to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

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

// A grid of kDims dimensions, the last kTiled of them cut into tiles; the last dimension runs
// fastest. Task takes (context, [thread,] start of each dimension, size of each tile).
template <size_t kDims, size_t kTiled, bool kWithThread, typename Task>
class Grid {
 public:
  Grid(Task task, void* context, std::array<size_t, kDims> ranges, std::array<size_t, kTiled> tiles)
      : task_(task), context_(context), ranges_(ranges) {
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
    if constexpr (kWithThread) {
      task_(context_, thread, start[kDim]...,
            std::min(ranges_[kPlain + kTile] - start[kPlain + kTile], steps_[kPlain + kTile])...);
    } else {
      task_(context_, start[kDim]...,
            std::min(ranges_[kPlain + kTile] - start[kPlain + kTile], steps_[kPlain + kTile])...);
    }
  }

  Task task_;
  void* context_;
  std::array<size_t, kDims> ranges_;
  std::array<size_t, kDims> steps_;
  size_t total_ = 1;
};

}  // namespace hearth::threads
