// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_map.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hearth::cpu {
namespace {

PackingMap example() {
  PackingMap plan;
  plan.graphs = {base::Sha256::of({}), base::Sha256Digest{7}};
  plan.segmentSizes = {4096, 100};
  plan.entries = {{0, {0, 0}, 7, 0, 0, 4096}, {1, {2, 1}, 9, 1, 64, 36}};
  return plan;
}

TEST(PackingMap, ComesBack) {
  const std::vector<uint8_t> bytes = example().encoded();
  const auto plan = PackingMap::parse(bytes, 2);
  ASSERT_TRUE(plan) << plan.error().toString();
  EXPECT_EQ(plan->graphs, example().graphs);
  EXPECT_EQ(plan->graphNumber(base::Sha256Digest{7}), 1u);
  EXPECT_EQ(plan->graphNumber(base::Sha256Digest{8}), std::nullopt);
  EXPECT_EQ(plan->entries[1].graph, 1u);
  EXPECT_EQ(plan->segmentSizes, example().segmentSizes);
  ASSERT_EQ(plan->entries.size(), 2u);
  EXPECT_EQ(plan->entries[1].place, (WeightPlace{2, 1}));
  EXPECT_EQ(plan->entries[1].seed, 9u);
  EXPECT_EQ(plan->entries[1].segment, 1u);
  EXPECT_EQ(plan->entries[1].offset, 64u);
  EXPECT_EQ(plan->entries[1].size, 36u);
}

TEST(PackingMap, SaysOfWhichGraphsPlacesAreMissing) {
  PackingMap partly = example();
  EXPECT_TRUE(PackingMap::parse(partly.encoded(), 2)->isWhole(1));
  partly.partly = {1};
  const auto plan = PackingMap::parse(partly.encoded(), 2);
  ASSERT_TRUE(plan) << plan.error().toString();
  EXPECT_TRUE(plan->isWhole(0));
  EXPECT_FALSE(plan->isWhole(1));
  for (const auto& wrong : {std::vector<uint32_t>{2}, {1, 0}, {1, 1}, {0, 1, 2}}) {
    partly.partly = wrong;
    EXPECT_FALSE(PackingMap::parse(partly.encoded(), 2));
  }
}

TEST(PackingMap, AnotherNumberOfSegmentsIsRefused) {
  const std::vector<uint8_t> bytes = example().encoded();
  EXPECT_FALSE(PackingMap::parse(bytes, 1));
  EXPECT_FALSE(PackingMap::parse(bytes, 3));
}

TEST(PackingMap, EveryCutIsRefused) {
  const std::vector<uint8_t> bytes = example().encoded();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(PackingMap::parse({bytes.data(), size}, 2)) << size;
}

TEST(PackingMap, PlacesOutsideTheirSegmentAreRefused) {
  const auto refused = [](auto change) {
    PackingMap plan = example();
    change(plan.entries[1]);
    return !PackingMap::parse(plan.encoded(), 2);
  };
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.size = 37; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.size = 0; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.size = UINT64_MAX; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.offset = UINT64_MAX - 63; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.offset = 32; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.segment = 2; }));
  EXPECT_TRUE(refused([](PackingMap::Entry& entry) { entry.graph = 2; }));
}

TEST(PackingMap, HugeCountsAreRefused) {
  std::vector<uint8_t> bytes = example().encoded();
  const uint64_t many = UINT64_MAX / 32 + 2;
  std::memcpy(bytes.data() + 24, &many, sizeof many);
  EXPECT_FALSE(PackingMap::parse(bytes, 2));
}

}  // namespace
}  // namespace hearth::cpu
