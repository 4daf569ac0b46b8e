// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "ops/broadcast.h"
#include "ops/strided_copy.h"

namespace hearth::ops {
namespace {

// The definition: the place, in an input, of element `index` of the output. The input's dimensions
// are the last ones of the output, or 1.
size_t placeOf(size_t index, const Dimensions& output, const Dimensions& input) {
  size_t place = 0;
  size_t stride = 1;
  for (size_t i = output.size(); i-- > output.size() - input.size();) {
    const size_t dimension = input[i - (output.size() - input.size())];
    if (dimension != 1) place += index % output[i] * stride;
    stride *= dimension;
    index /= output[i];
  }
  return place;
}

// forEachBroadcast() and forEachBroadcastRow() visit every element once, with the right indices.
void expectRightWalks(threads::ThreadPool* pool, const Dimensions& output, const Dimensions& a,
                      const Dimensions& b) {
  size_t count = 1;
  for (const uint32_t dimension : output) count *= dimension;
  std::vector<std::array<size_t, 2>> expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = {placeOf(i, output, a), placeOf(i, output, b)};
  std::vector<std::array<size_t, 2>> made(count, {SIZE_MAX, SIZE_MAX});
  std::vector<uint8_t> visits(count, 0);
  forEachBroadcast(output, a, b, [&](size_t index, size_t left, size_t right) {
    made[index] = {left, right};
    ++visits[index];
  });
  EXPECT_EQ(made, expected);
  EXPECT_EQ(visits, std::vector<uint8_t>(count, 1));
  made.assign(count, {SIZE_MAX, SIZE_MAX});
  visits.assign(count, 0);
  forEachBroadcastRow<2>(pool, output, {&a, &b}, [&](const BroadcastRow<2>& row) {
    for (size_t i = 0; i < row.count; ++i) {
      made[row.first + i] = {row.at[0] + i * row.step[0], row.at[1] + i * row.step[1]};
      ++visits[row.first + i];
    }
  });
  EXPECT_EQ(made, expected);
  EXPECT_EQ(visits, std::vector<uint8_t>(count, 1));
}

TEST(BroadcastRowsTest, FollowTheDefinition) {
  const auto pool = threads::ThreadPool::create(3);
  ASSERT_TRUE(pool);
  for (threads::ThreadPool* threads : {static_cast<threads::ThreadPool*>(nullptr), pool->get()}) {
    expectRightWalks(threads, {}, {}, {});
    expectRightWalks(threads, {5}, {5}, {1});
    expectRightWalks(threads, {2, 3, 4}, {2, 3, 4}, {4});
    expectRightWalks(threads, {2, 3, 4}, {2, 1, 4}, {3, 1});
    expectRightWalks(threads, {2, 3, 4}, {1, 3, 1}, {2, 1, 4});
    expectRightWalks(threads, {1, 6, 1, 5, 1}, {6, 1, 5, 1}, {1, 1, 1, 1, 1});
    expectRightWalks(threads, {0, 4}, {0, 4}, {4});
    expectRightWalks(threads, {3, 50000}, {3, 50000}, {3, 1});
    expectRightWalks(threads, {40000, 7}, {40000, 1}, {7});
    expectRightWalks(threads, {100000}, {100000}, {100000});
  }
}

TEST(BroadcastRowsTest, RandomShapesFollowTheDefinition) {
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
    expectRightWalks(nullptr, output, inputs[0], inputs[1]);
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
