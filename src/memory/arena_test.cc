// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace hearth::memory {
namespace {

bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
  return a.firstStep <= b.lastStep && b.firstStep <= a.lastStep && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

TEST(ArenaTest, BlocksOfDifferentTimesShareMemory) {
  std::vector<ArenaBlock> blocks = {{256, 0, 1}, {256, 1, 2}, {256, 2, 3}};
  const auto bytes = placeBlocks(blocks, 0);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, 512u);
  EXPECT_EQ(blocks[0].offset, blocks[2].offset);
}

TEST(ArenaTest, ABlockThatExceedsTheLimitIsNamed) {
  std::vector<ArenaBlock> blocks = {{64, 0, 3}, {1024, 1, 2}, {128, 1, 1}};
  const auto bytes = placeBlocks(blocks, 1024 + 128);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error(), 0u);
}

TEST(ArenaTest, ASumThatWrapsIsTooLarge) {
  std::vector<ArenaBlock> blocks = {{UINT64_MAX - 64, 0, 1}, {128, 0, 1}};
  const auto bytes = placeBlocks(blocks, 0);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error(), 1u);
}

TEST(ArenaTest, BlocksInUseAtTheSameStepNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const uint32_t steps = round % 2 == 0 ? 30 : 3000;
    std::vector<ArenaBlock> blocks(40);
    for (ArenaBlock& block : blocks) {
      block.bytes = (random() % 32 + 1) * 64;
      block.firstStep = static_cast<int32_t>(random() % steps);
      block.lastStep = block.firstStep + static_cast<int32_t>(random() % (steps / 4));
    }
    const auto bytes = placeBlocks(blocks, 0);
    ASSERT_TRUE(bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, *bytes);
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(blocks[i], blocks[j]));
    }
  }
}

}  // namespace
}  // namespace hearth::memory
