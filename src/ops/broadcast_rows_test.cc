// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast_rows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "ops/broadcast.h"
#include "ops/strided_copy.h"

namespace hearth::ops {
namespace {

// Rows give the same three indices for each element as the walk over single elements does.
void expectSameWalk(threads::ThreadPool* pool, const Dimensions& output, const Dimensions& a,
                    const Dimensions& b) {
  size_t count = 1;
  for (const uint32_t dimension : output) count *= dimension;
  std::vector<std::array<size_t, 2>> expected(count);
  forEachBroadcast(output, a, b, [&](size_t index, size_t left, size_t right) {
    expected[index] = {left, right};
  });
  std::vector<std::array<size_t, 2>> made(count, {SIZE_MAX, SIZE_MAX});
  std::vector<uint8_t> visits(count, 0);
  forEachBroadcastRow<2>(pool, output, {&a, &b}, [&](const BroadcastRow<2>& row) {
    for (size_t i = 0; i < row.count; ++i) {
      made[row.first + i] = {row.at[0] + i * row.step[0], row.at[1] + i * row.step[1]};
      ++visits[row.first + i];
    }
  });
  EXPECT_EQ(made, expected);
  EXPECT_EQ(visits, std::vector<uint8_t>(count, 1));
}

TEST(BroadcastRowsTest, WalkAsSingleElementsDo) {
  const auto pool = threads::ThreadPool::create(3);
  ASSERT_TRUE(pool);
  for (threads::ThreadPool* threads : {static_cast<threads::ThreadPool*>(nullptr), pool->get()}) {
    expectSameWalk(threads, {}, {}, {});
    expectSameWalk(threads, {5}, {5}, {1});
    expectSameWalk(threads, {2, 3, 4}, {2, 3, 4}, {4});
    expectSameWalk(threads, {2, 3, 4}, {2, 1, 4}, {3, 1});
    expectSameWalk(threads, {2, 3, 4}, {1, 3, 1}, {2, 1, 4});
    expectSameWalk(threads, {1, 6, 1, 5, 1}, {6, 1, 5, 1}, {1, 1, 1, 1, 1});
    expectSameWalk(threads, {0, 4}, {0, 4}, {4});
    expectSameWalk(threads, {3, 50000}, {3, 50000}, {3, 1});
    expectSameWalk(threads, {40000, 7}, {40000, 1}, {7});
    expectSameWalk(threads, {100000}, {100000}, {100000});
  }
}

TEST(BroadcastRowsTest, RandomShapesWalkAsSingleElementsDo) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Dimensions output(random() % 6);
    for (uint32_t& dimension : output) dimension = 1 + random() % 5;
    Dimensions inputs[2];
    for (Dimensions& input : inputs) {
      input = output;
      for (uint32_t& dimension : input)
        if (random() % 3 == 0) dimension = 1;
      if (!input.empty()) input.erase(input.begin(), input.begin() + random() % input.size());
    }
    expectSameWalk(nullptr, output, inputs[0], inputs[1]);
  }
}

TEST(StridedCopyThreadsTest, CopyTheSame) {
  const auto pool = threads::ThreadPool::create(3);
  ASSERT_TRUE(pool);
  std::vector<uint32_t> source(600 * 500);
  std::iota(source.begin(), source.end(), 0u);
  // A transposition, a reversal, rows with gaps, one block.
  const std::vector<std::vector<CopyDimension>> copies = {
      {{500, 1, 600}, {600, 500, 1}},
      {{600, -500, 500}, {500, 1, 1}},
      {{600, 500, 400}, {400, 1, 1}},
      {{600 * 500, 1, 1}},
  };
  for (const std::vector<CopyDimension>& loops : copies) {
    const uint32_t* from = source.data() + (loops[0].sourceStride < 0 ? 599 * 500 : 0);
    std::vector<uint32_t> alone(source.size());
    std::vector<uint32_t> shared(source.size());
    copyStrided(sizeof(uint32_t), loops, from, alone.data());
    copyStrided(sizeof(uint32_t), loops, from, shared.data(), pool->get());
    EXPECT_EQ(alone, shared);
  }
  EXPECT_GT(pool.value()->counters().calls, 0u);
}

}  // namespace
}  // namespace hearth::ops
