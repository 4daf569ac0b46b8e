// SPDX-License-Identifier: Apache-2.0
// A process that dies at any moment leaves either the old bundle or the new one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/crash_point.h"
#include "cache/testing/bundle_test_util.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/random_killer_test_util.h"

#ifdef HEARTH_TEST_HOOKS

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class BundleCrashTest : public BundleTest {
 protected:
  // Replaces the bundle of plan 1 by one of plan 2, which takes over some of its segments.
  int replace() const {
    const auto store = BundleStore::open(options());
    if (!store) return 20;
    if (!publish(**store, segmentKey(70), payload(70, 1u << 20))) return 21;
    std::vector<SegmentKey> segments = keys();
    segments.push_back(segmentKey(70));
    if (!(*store)->publishPlan(planKey(2), payload(102, 3000), segments)) return 22;
    (*store)->settle();
    return 0;
  }
  int buildAnew() const {
    const auto store = BundleStore::open(options());
    return store ? build(**store) : 30;
  }

  void expectOldOrNew() const {
    const auto store = open(strict());
    const auto first = store->findPlan(planKey(1));
    const auto second = store->findPlan(planKey(2));
    EXPECT_NE(first.has_value(), second.has_value());
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      const FoundSegment found = store->find(keys()[i]);
      ASSERT_TRUE(found);
      EXPECT_TRUE(equal(found.segment->bytes(), bytesOf(i)));
    }
    EXPECT_EQ(store->find(segmentKey(70)).segment != nullptr, second.has_value());
    EXPECT_EQ(store->counters().segmentsCorrupt, 0u);
  }
};

TEST_F(BundleCrashTest, KilledAtEveryCrashPoint) {
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("bundle.")) continue;
    ++points;
    for (const int pass : {1, 3}) {
      SCOPED_TRACE(point + ":" + std::to_string(pass));
      fs::remove(path());
      ASSERT_EQ(waitForChild(startChild([&] { return buildAnew(); })), 0);
      const int status =
          endOfCrashing(point + ":" + std::to_string(pass), [&] { return replace(); });
      EXPECT_TRUE(wasKilled(status) || (pass > 1 && succeeded(status))) << status;
      expectOldOrNew();
      // The next process uses what is left, and removes it.
      EXPECT_EQ(waitForChild(startChild([&] { return replace(); })), 0);
      EXPECT_FALSE(fs::exists(building()));
      expectOldOrNew();
    }
  }
  EXPECT_GE(points, 8);
}

// The same while facts are added to a plan.
TEST_F(BundleCrashTest, KilledWhileFactsAreAdded) {
  const Fact fact{"a fact", payload(9, 200)};
  const auto remember = [&] {
    const auto store = BundleStore::open(options());
    if (!store) return 40;
    (*store)->remember({&fact, 1});
    (*store)->settle();
    return 0;
  };
  int killed = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("bundle.")) continue;
    SCOPED_TRACE(point);
    fs::remove(path());
    ASSERT_EQ(waitForChild(startChild([&] { return buildAnew(); })), 0);
    const int status = endOfCrashing(point, remember);
    killed += wasKilled(status) ? 1 : 0;
    expectOldOrNew();
    const auto kept = open(strict())->recall(fact.key);
    if (kept) {
      EXPECT_EQ(*kept, fact.value);
    }
    EXPECT_EQ(waitForChild(startChild([&] { return remember(); })), 0);
    EXPECT_FALSE(fs::exists(building()));
    EXPECT_EQ(open(strict())->recall(fact.key), fact.value);
    expectOldOrNew();
  }
  EXPECT_GE(killed, 6);
}

TEST_F(BundleCrashTest, KilledAtRandomInstantsWhileOthersStart) {
  const int rounds = RandomKiller::rounds(60, 1000);
  RandomKiller killer(4711);
  ASSERT_EQ(waitForChild(startChild([&] { return buildAnew(); })), 0);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const pid_t others[] = {startChild([&] { return buildAnew(); }),
                            startChild([&] { return buildAnew(); })};
    // Both kinds of work alternate, so that each child has something to replace. The victim is
    // forked last, since forking takes longer than its work in some builds.
    killer.kill(startChild([&] { return round % 2 == 0 ? replace() : buildAnew(); }));
    for (const pid_t other : others) {
      const int status = waitForChild(other);
      // Exit status 4: the other child was writing the bundle at that moment.
      EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4))
          << status;
    }
    expectOldOrNew();
  }
  EXPECT_GT(killer.killed(), rounds / 4);
  ASSERT_EQ(waitForChild(startChild([&] { return replace(); })), 0);
  EXPECT_FALSE(fs::exists(building()));
}

}  // namespace
}  // namespace hearth::cache

#endif
