// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

#include <gtest/gtest.h>

#include "cache/identity/content_hash.h"

namespace hearth::cpu {
namespace {

constexpr uint64_t kMiB = cache::kHashBlock;
using Blocks = std::vector<std::vector<base::Sha256Digest>>;

base::Sha256Digest digest(uint8_t number) {
  return base::Sha256::of({&number, 1});
}

// The digests of two pools of 4 and 2 blocks.
Blocks blocks() {
  return {{digest(1), digest(2), digest(3), digest(4)}, {digest(5), digest(6)}};
}

PackingSource source(std::vector<PackingSource::Range> ranges) {
  return {digest(9), std::move(ranges)};
}

TEST(PackingSourceTest, OnlyBlocksOfItsConstantsCount) {
  // From the middle of block 1 to the beginning of block 2, and all of the other pool's block 0.
  const PackingSource two = source({{0, kMiB + kMiB / 2, kMiB}, {1, 0, kMiB}});
  const auto content = two.content(blocks());
  ASSERT_TRUE(content);
  EXPECT_EQ(two.content(blocks()), content);
  for (const auto& [pool, block, counts] : {std::tuple(0, 0, false),
                                            {0, 1, true},
                                            {0, 2, true},
                                            {0, 3, false},
                                            {1, 0, true},
                                            {1, 1, false}}) {
    Blocks changed = blocks();
    changed[static_cast<size_t>(pool)][static_cast<size_t>(block)] = digest(77);
    EXPECT_EQ(two.content(changed) != content, counts) << pool << " " << block;
  }
}

TEST(PackingSourceTest, EverythingElseCounts) {
  const auto content = source({{0, 5, 100}}).content(blocks());
  EXPECT_NE(source({{0, 6, 100}}).content(blocks()), content);
  EXPECT_NE(source({{0, 5, 101}}).content(blocks()), content);
  EXPECT_NE(source({{1, 5, 100}}).content(blocks()), content);
  EXPECT_NE(source({{0, 5, 100}, {0, 5, 100}}).content(blocks()), content);
  PackingSource other = source({{0, 5, 100}});
  other.attributes = digest(8);
  EXPECT_NE(other.content(blocks()), content);
}

TEST(PackingSourceTest, WithoutTheBlocksThereIsNone) {
  EXPECT_TRUE(source({{1, kMiB, kMiB}}).content(blocks()));
  EXPECT_FALSE(source({{1, kMiB, kMiB + 1}}).content(blocks()));
  EXPECT_FALSE(source({{2, 0, 1}}).content(blocks()));
  EXPECT_FALSE(source({{0, 0, 0}}).content(blocks()));
  EXPECT_FALSE(source({{0, 0, 1}}).content(Blocks(1)));
}

}  // namespace
}  // namespace hearth::cpu
