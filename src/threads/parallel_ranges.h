// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "threads/thread_pool.h"

namespace hearth::threads {

// Bytes that a part has to move to be worth waking another thread.
inline constexpr uint64_t kBytesPerTask = 64 << 10;

// Calls fn(begin, end) over [0, count) in parts of at least half of `grain`, on the threads of
// `pool` (null: on the calling thread, in one call). Parts are contiguous and never overlap.
template <typename Function>
void forRanges(ThreadPool* pool, uint64_t count, uint64_t grain, const Function& fn) {
  if (pool == nullptr || count <= grain) {
    if (count != 0) fn(uint64_t{0}, count);
    return;
  }
  const uint64_t threads = pool->threadCount();
  uint64_t parts = std::min<uint64_t>((count + grain - 1) / grain, threads * 4);
  // Each thread gets as many: with three parts one of two threads would wait while the other one
  // computes the third. Few parts for many threads would be too small.
  const uint64_t even = (parts + threads - 1) / threads * threads;
  if (2 * (count / even) >= grain) parts = even;
  // Parts are of nearly equal size. Each thread begins with neighbouring ones.
  pool->parallelFor(parts, [&](size_t part) {
    const uint64_t begin = count * part / parts;
    const uint64_t end = count * (part + 1) / parts;
    if (begin != end) fn(begin, end);
  });
}

// The grain for forRanges() over elements of `bytes` bytes each.
inline uint64_t grainOf(uint64_t bytes) {
  return std::max<uint64_t>(1, kBytesPerTask / std::max<uint64_t>(1, bytes));
}

}  // namespace hearth::threads
