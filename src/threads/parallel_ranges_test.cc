// SPDX-License-Identifier: Apache-2.0
#include "threads/parallel_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace hearth::threads {
namespace {

// The ranges that forRanges() makes, in order.
std::vector<std::pair<uint64_t, uint64_t>> rangesOf(ThreadPool* pool, uint64_t count,
                                                    uint64_t grain) {
  std::mutex mutex;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  forRanges(pool, count, grain, [&](uint64_t begin, uint64_t end) {
    const std::scoped_lock lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::ranges::sort(ranges);
  return ranges;
}

TEST(ParallelRangesTest, RangesCoverEverythingOnce) {
  for (const size_t threads : {1, 2, 3, 5}) {
    const auto pool = ThreadPool::create(threads).value();
    for (const uint64_t count : {0, 1, 2, 3, 7, 16, 100, 1000})
      for (const uint64_t grain : {1, 2, 5, 6, 33, 500, 2000}) {
        uint64_t end = 0;
        for (const auto& [first, last] : rangesOf(pool.get(), count, grain)) {
          EXPECT_EQ(first, end);
          EXPECT_LT(first, last);
          // Rounding takes one.
          EXPECT_TRUE(2 * (last - first + 1) >= grain || count <= grain) << count << ' ' << grain;
          end = last;
        }
        EXPECT_EQ(end, count);
      }
  }
}

// 16 lines of 6 would be three parts.
TEST(ParallelRangesTest, EachThreadGetsAsManyParts) {
  for (const size_t threads : {2, 3, 4}) {
    const auto pool = ThreadPool::create(threads).value();
    for (const uint64_t grain : {1, 2, 3, 5, 6})
      EXPECT_EQ(rangesOf(pool.get(), 96, grain * 6).size() % threads, 0u)
          << threads << ' ' << grain;
  }
}

TEST(ParallelRangesTest, FewPartsForManyThreadsStayLarge) {
  const auto pool = ThreadPool::create(5).value();
  EXPECT_EQ(rangesOf(pool.get(), 16, 10).size(), 2u);
  EXPECT_EQ(rangesOf(pool.get(), 16, 6).size(), 5u);
  EXPECT_EQ(rangesOf(nullptr, 16, 6).size(), 1u);
}

}  // namespace
}  // namespace hearth::threads
