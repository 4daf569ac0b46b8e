// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/store_collector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/store/store_facts.h"
#include "cache/testing/memory_store_test.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::seconds;

class StoreCollectorTest : public MemoryStoreTest {
 protected:
  void addPlan(uint64_t number, std::vector<uint64_t> segments, const StoreOptions& storeOptions) {
    std::vector<SegmentKey> keys;
    const auto store = open(storeOptions);
    for (const uint64_t segment : segments) {
      keys.push_back(segmentKey(segment));
      ASSERT_TRUE(store->publish(keys.back(), payload(segment, 40'000)));
    }
    ASSERT_TRUE(store->publishPlan(planKey(number), payload(number, 100), keys));
  }
  void addPlan(uint64_t number, std::vector<uint64_t> segments) {
    addPlan(number, std::move(segments), options());
  }
  static void setAge(const fs::path& path, seconds age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  void usePlan(uint64_t number, seconds age) {
    setAge(root() / "stamps" / planKey(number).hex(), age);
  }
  bool hasPlan(uint64_t number) const { return fs::exists(planPath(planKey(number))); }
  bool hasSegment(uint64_t number) const {
    return fs::exists(segmentPath(segmentKey(number), false)) ||
           fs::exists(segmentPath(segmentKey(number), true));
  }
};

// A clock was ahead and has been corrected.
TEST_F(StoreCollectorTest, PlansOfAWrongClockAreEvicted) {
  addPlan(1, {1});
  addPlan(2, {2});
  addPlan(3, {3});
  usePlan(1, hours(1));
  usePlan(2, -hours(24 * 3650));
  usePlan(3, hours(2));
  const uint64_t all = open()->inventory()->bytesOnDisk;
  EXPECT_EQ(open()->prune({.maxBytes = all - 1})->plans, 1u);
  EXPECT_FALSE(hasPlan(2) || hasSegment(2));
  // The same by age. A clock that is off by an hour is not unusual.
  addPlan(2, {2});
  usePlan(2, -hours(24 * 3650));
  usePlan(1, -hours(1));
  EXPECT_EQ(open()->prune({.olderThan = hours(24)})->plans, 1u);
  EXPECT_FALSE(hasPlan(2));
  EXPECT_TRUE(hasPlan(1) && hasPlan(3));
}

TEST_F(StoreCollectorTest, TheLeastRecentlyUsedPlanGoesFirstWithItsOwnSegments) {
  addPlan(1, {1, 10});
  addPlan(2, {2, 10});
  addPlan(3, {3});
  usePlan(1, hours(1));
  usePlan(2, hours(3));
  usePlan(3, hours(2));
  const uint64_t all = open()->inventory()->bytesOnDisk;
  auto report = open()->prune({.maxBytes = all - 1});
  EXPECT_EQ(report->plans, 1u);
  EXPECT_FALSE(hasPlan(2) || hasSegment(2));
  EXPECT_TRUE(hasPlan(1) && hasPlan(3) && hasSegment(1) && hasSegment(3) && hasSegment(10));
  EXPECT_EQ(report->bytesLeft, open()->inventory()->bytesOnDisk);
  EXPECT_EQ(report->bytesLeft + report->bytesFreed, all);
  report = open()->prune({.olderThan = hours(2) - seconds(60)});
  EXPECT_FALSE(hasPlan(3) || hasSegment(3));
  EXPECT_TRUE(hasPlan(1) && hasSegment(10));
}

TEST_F(StoreCollectorTest, StampsOfPlansThatAreGoneAreLeftovers) {
  addPlan(1, {1});
  addPlan(2, {2});
  fs::remove(planPath(planKey(2)));
  ASSERT_TRUE(open()->prune({.leftoversOlderThan = seconds(0)}));
  EXPECT_TRUE(fs::exists(root() / "stamps" / planKey(1).hex()));
  EXPECT_FALSE(fs::exists(root() / "stamps" / planKey(2).hex()));
}

TEST_F(StoreCollectorTest, LoadingAPlanIsAUse) {
  addPlan(1, {1});
  addPlan(2, {2});
  usePlan(1, hours(5));
  usePlan(2, hours(1));
  ASSERT_TRUE(open()->findPlan(planKey(1)));
  (void)open()->prune({.maxBytes = open()->inventory()->bytesOnDisk - 1});
  EXPECT_TRUE(hasPlan(1));
  EXPECT_FALSE(hasPlan(2));
}

TEST_F(StoreCollectorTest, PlansOfOtherBuildsGoBeforeOlderOnes) {
  StoreOptions other = options();
  other.fingerprint = {1};
  StoreOptions current = options();
  current.fingerprint = {2};
  addPlan(1, {1}, other);
  addPlan(2, {2}, current);
  usePlan(1, hours(1));
  usePlan(2, hours(9));
  (void)open(current)->prune({.maxBytes = open(current)->inventory()->bytesOnDisk - 1});
  EXPECT_TRUE(hasPlan(2));
  EXPECT_FALSE(hasPlan(1));
}

TEST_F(StoreCollectorTest, OrphansGoWhenOldOrForSpaceButNotWhileAStartMayWantThem) {
  ASSERT_TRUE(open()->publish(segmentKey(1), payload(1, 40'000)));
  ASSERT_TRUE(open()->publish(segmentKey(2), payload(2, 40'000)));
  addPlan(3, {3});
  open()->settle();
  setAge(segmentPath(segmentKey(1), false), hours(1));
  const auto inventory = open()->inventory();
  EXPECT_EQ(inventory->segments.at(segmentKey(1)).plans, 0u);
  EXPECT_EQ(inventory->segments.at(segmentKey(3)).plans, 1u);
  (void)open()->prune({});
  EXPECT_TRUE(hasSegment(1) && hasSegment(2));
  (void)open()->prune({.maxBytes = inventory->bytesOnDisk - 1});
  EXPECT_FALSE(hasSegment(1));
  EXPECT_TRUE(hasSegment(2) && hasPlan(3));
  setAge(segmentPath(segmentKey(2), false), hours(25));
  (void)open()->prune({});
  EXPECT_FALSE(hasSegment(2));
}

TEST_F(StoreCollectorTest, LeftoversGoWhenNobodyWritesThem) {
  const auto store = open();
  writeFile(root() / "tmp" / "dead", payload(1, 5000));
  fs::create_directories(root() / "tmp" / "folder" / "x");
  writeFile(root() / "tmp" / "folder" / "x" / "y", payload(1, 10));
  const base::Descriptor folder(::open((root() / "tmp").c_str(), O_RDONLY | O_DIRECTORY));
  auto live = TempObject::create(folder.get());
  ASSERT_TRUE(live);
  EXPECT_EQ(store->prune({})->temporaries, 0u);
  EXPECT_EQ(store->prune({.leftoversOlderThan = seconds(0)})->temporaries, 2u);
  EXPECT_EQ(store->inventory()->temporaries.size(), 1u);
}

TEST_F(StoreCollectorTest, PublishingKeepsTheLimit) {
  StoreOptions small = options();
  small.maxBytes = 1'000'000;
  const auto store = open(small);
  for (uint64_t i = 0; i < 60; ++i) {
    {
      const auto segment = store->publish(segmentKey(i), payload(i, 40'000));
      ASSERT_TRUE(segment) << segment.error().message;
      ASSERT_TRUE(store->publishPlan(planKey(i), payload(i, 10), std::vector{segmentKey(i)}));
    }
    store->settle();
    usePlan(i, hours(1000) - seconds(i));
    EXPECT_LE(store->inventory()->bytesOnDisk, small.maxBytes);
  }
  EXPECT_TRUE(hasPlan(59) && hasSegment(59));
  EXPECT_FALSE(hasPlan(0) || hasSegment(0));
  EXPECT_EQ(store->publish(segmentKey(99), payload(1, 1'000'001)).error().reason,
            StoreReason::kOverLimit);
}

TEST_F(StoreCollectorTest, PlansInUseAreNotEvicted) {
  StoreOptions small = options();
  small.maxBytes = 120'000;
  const auto store = open(small);
  ASSERT_TRUE(store->publish(segmentKey(1), payload(1, 80'000)));
  const auto plan = store->publishPlan(planKey(1), payload(1, 10), std::vector{segmentKey(1)});
  ASSERT_TRUE(plan);
  EXPECT_EQ(store->publish(segmentKey(2), payload(2, 80'000)).error().reason,
            StoreReason::kOverLimit);
  EXPECT_TRUE(hasSegment(1));
}

TEST_F(StoreCollectorTest, RemoveTakesOnePlanAndRemoveAllEverything) {
  addPlan(1, {1, 10});
  addPlan(2, {2, 10});
  EXPECT_EQ(open()->remove(planKey(9)).error().reason, StoreReason::kAbsent);
  ASSERT_TRUE(open()->remove(planKey(1)));
  EXPECT_FALSE(hasPlan(1) || hasSegment(1));
  EXPECT_TRUE(hasPlan(2) && hasSegment(2) && hasSegment(10));
  const fs::path pipelines = root() / kPipelinesFile;
  writeFile(pipelines, payload(1, 100));
  ASSERT_TRUE(open()->removeAll());
  EXPECT_EQ(open()->inventory()->bytesOnDisk, 0u);
  EXPECT_FALSE(fs::exists(pipelines));
}

TEST_F(StoreCollectorTest, TheStandardLimitIsATenthOfTheFileSystem) {
  StoreOptions standard = options();
  standard.maxBytes = 0;
  const fs::space_info space = fs::space(folder_.path());
  EXPECT_EQ(open(standard)->maxBytes(),
            std::min<uint64_t>(uint64_t{16} << 30, space.capacity / 10));
}

}  // namespace
}  // namespace hearth::cache
