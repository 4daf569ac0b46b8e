// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

constexpr uint64_t kBlock = cache::kTagBlock;
using Tags = std::vector<cache::ContentTags>;

base::Sha256Digest digest(uint8_t number) {
  return base::Sha256::of({&number, 1});
}

// The tags of two pools of 4 and 2 blocks.
Tags tags() {
  return {{4 * kBlock, {{1}, {2}, {3}, {4}}}, {2 * kBlock, {{5}, {6}}}};
}

PackingSource source(std::vector<PackingSource::Range> ranges) {
  return {digest(9), std::move(ranges)};
}

TEST(PackingSourceTest, OnlyBlocksOfItsConstantsCount) {
  // From the middle of block 1 to the beginning of block 2, and all of the other pool's block 0.
  const PackingSource two = source({{0, kBlock + kBlock / 2, kBlock}, {1, 0, kBlock}});
  const auto content = two.content(tags());
  ASSERT_TRUE(content);
  EXPECT_EQ(two.content(tags()), content);
  for (const auto& [pool, block, counts] : {std::tuple(0, 0, false),
                                            {0, 1, true},
                                            {0, 2, true},
                                            {0, 3, false},
                                            {1, 0, true},
                                            {1, 1, false}}) {
    Tags changed = tags();
    changed[static_cast<size_t>(pool)].blocks[static_cast<size_t>(block)] = {77};
    EXPECT_EQ(two.content(changed) != content, counts) << pool << " " << block;
  }
}

TEST(PackingSourceTest, EverythingElseCounts) {
  const auto content = source({{0, 5, 100}}).content(tags());
  EXPECT_NE(source({{0, 6, 100}}).content(tags()), content);
  EXPECT_NE(source({{0, 5, 101}}).content(tags()), content);
  EXPECT_NE(source({{1, 5, 100}}).content(tags()), content);
  EXPECT_NE(source({{0, 5, 100}, {0, 5, 100}}).content(tags()), content);
  PackingSource other = source({{0, 5, 100}});
  other.attributes = digest(8);
  EXPECT_NE(other.content(tags()), content);
}

TEST(PackingSourceTest, WithoutTheTagsThereIsNone) {
  EXPECT_TRUE(source({{1, kBlock, kBlock}}).content(tags()));
  EXPECT_FALSE(source({{1, kBlock, kBlock + 1}}).content(tags()));
  EXPECT_FALSE(source({{2, 0, 1}}).content(tags()));
  EXPECT_FALSE(source({{0, 0, 0}}).content(tags()));
  EXPECT_FALSE(source({{0, 0, 1}}).content(Tags(1)));
}

}  // namespace
}  // namespace hearth::cpu
