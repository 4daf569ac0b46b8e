// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_draft.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

namespace hearth::cpu {
namespace {

constexpr base::Sha256Digest kThis{1};
constexpr base::Sha256Digest kOther{2};
constexpr size_t kSize = 4096;

std::shared_ptr<PackedSegment> publishedAs(const cache::SegmentKey& key) {
  const auto bytes = std::make_shared<std::array<uint8_t, kSize>>();
  return std::make_shared<PackedSegment>(
      std::make_shared<const cache::Segment>(key, *bytes, bytes));
}

cache::LoadedPlan storedAs(const PackingMap& plan, std::vector<cache::SegmentKey> keys) {
  cache::PlanContent content;
  content.bytes = plan.encoded();
  content.segments = std::move(keys);
  return {std::move(content), base::Descriptor()};
}

const cache::SegmentKey kFirst{{11}};
const cache::SegmentKey kSecond{{12}};
const cache::SegmentKey kThird{{13}};

TEST(PlanDraftTest, NamesEachPublishedSegmentOnce) {
  const auto shared = publishedAs(kFirst);
  const PlanDraft draft(kThis,
                        {{{0, 0}, {shared, 0, 64, 5}},
                         {{1, 0}, {publishedAs(kSecond), 0, kSize, 6}},
                         {{2, 0}, {shared, 64, 100, 7}}},
                        true);
  EXPECT_EQ(std::vector(draft.keys().begin(), draft.keys().end()), (std::vector{kFirst, kSecond}));
  EXPECT_EQ(draft.plan().segmentSizes, (std::vector<uint64_t>{kSize, kSize}));
  EXPECT_TRUE(draft.plan().isWhole(0));
  ASSERT_EQ(draft.plan().entries.size(), 3u);
  const PackingMap::Entry& last = draft.plan().entries[2];
  EXPECT_EQ(last.place, (WeightPlace{2, 0}));
  EXPECT_EQ(last.segment, 0u);
  EXPECT_EQ(last.offset, 64u);
  EXPECT_EQ(last.size, 100u);
  EXPECT_EQ(last.seed, 7u);
}

TEST(PlanDraftTest, LacksWhatIsNotPublishedOrNotPacked) {
  const auto unpublished = PackedSegment::allocate(kSize);
  ASSERT_TRUE(unpublished);
  const std::map<WeightPlace, PackedPlace> places = {{{0, 0}, {publishedAs(kFirst), 0, 64, 5}},
                                                     {{1, 0}, {*unpublished, 0, kSize, 6}}};
  const PlanDraft draft(kThis, places, true);
  EXPECT_FALSE(draft.plan().isWhole(0));
  EXPECT_EQ(draft.plan().entries.size(), 1u);
  EXPECT_FALSE(PlanDraft(kThis, {*places.begin()}, false).plan().isWhole(0));
}

TEST(PlanDraftTest, KeepsWhatAPlanHasForOtherGraphs) {
  PackingMap stored;
  stored.graphs = {kThis, kOther};
  stored.partly = {1};
  stored.segmentSizes = {kSize, kSize, kSize};
  stored.entries = {{0, {0, 0}, 1, 0, 0, 64},     // an earlier state of this graph
                    {1, {0, 0}, 2, 1, 0, kSize},  // a segment that this graph uses, too
                    {1, {3, 1}, 3, 2, 128, 256}};
  PlanDraft draft(kThis, {{{0, 0}, {publishedAs(kSecond), 0, kSize, 9}}}, true);
  draft.addOthers(storedAs(stored, {kFirst, kSecond, kThird}));

  const auto plan = PackingMap::parse(draft.plan().encoded(), draft.keys().size());
  ASSERT_TRUE(plan) << plan.error().toString();
  EXPECT_EQ(plan->graphs, (std::vector{kThis, kOther}));
  EXPECT_TRUE(plan->isWhole(0));
  EXPECT_FALSE(plan->isWhole(1));
  EXPECT_EQ(std::vector(draft.keys().begin(), draft.keys().end()), (std::vector{kSecond, kThird}));
  ASSERT_EQ(plan->entries.size(), 3u);
  EXPECT_EQ(plan->entries[0].seed, 9u);
  EXPECT_EQ(plan->entries[1].segment, 0u);
  EXPECT_EQ(plan->entries[2].segment, 1u);
  EXPECT_EQ(plan->entries[2].graph, 1u);
  EXPECT_EQ(plan->entries[2].place, (WeightPlace{3, 1}));
}

TEST(PlanDraftTest, TakesNothingFromAMalformedPlan) {
  PlanDraft draft(kThis, {{{0, 0}, {publishedAs(kFirst), 0, kSize, 9}}}, true);
  cache::PlanContent content;
  content.bytes = {1, 2, 3};
  content.segments = {kSecond};
  draft.addOthers(cache::LoadedPlan(std::move(content), base::Descriptor()));
  EXPECT_EQ(draft.keys().size(), 1u);
  EXPECT_EQ(draft.plan().graphs.size(), 1u);
}

}  // namespace
}  // namespace hearth::cpu
