// SPDX-License-Identifier: Apache-2.0
// A process that dies at any moment leaves either the old store or the new one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/crash_point.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/random_killer_test_util.h"
#include "cache/testing/store_test_util.h"

#ifdef HEARTH_TEST_HOOKS

namespace hearth::cache {
namespace {

constexpr size_t kSizes[] = {100, 5000, (1u << 20) + 17, 2u << 20};

class StoreCrashTest : public StoreTest {
 protected:
  StoreCrashTest() : StoreTest(TempFolder::Place::kMemory) {
    for (size_t i = 0; i < std::size(kSizes); ++i) payloads_.push_back(payload(i, kSizes[i]));
  }
  static SegmentKey keyOf(size_t index) { return segmentKey(index); }
  const std::vector<uint8_t>& bytesOf(size_t index) const { return payloads_[index]; }

  // Does everything that writes: segments, a plan that replaces another, final names, garbage
  // collection.
  int work() const {
    const auto store = WeightStore::open(options());
    if (!store) return 1;
    std::vector<SegmentKey> keys;
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      keys.push_back(keyOf(i));
      if (!(*store)->publish(keys.back(), bytesOf(i))) return 2;
    }
    // This segment is copied before it has a name.
    (*store)->publishAsync({.payload = bytesOf(3), .copied = [](const memory::Mapping&) {
                            }});
    // And this one is written in parts.
    std::unique_ptr<SegmentWriter> writer = (*store)->beginWriting(bytesOf(3).size());
    if (writer == nullptr || !writer->append(std::span(bytesOf(3)).first(1u << 20)) ||
        !writer->append(std::span(bytesOf(3)).subspan(1u << 20)) || !writer->map())
      return 6;
    (*store)->publishAsync({.written = std::move(writer)});
    (*store)->flush();
    if (!(*store)->publishPlan(planKey(1), payload(101, 3000), keys)) return 3;
    if (!(*store)->publishPlan(planKey(2), payload(102, 3000), {})) return 4;
    (*store)->settle();
    if (!(*store)->prune({.maxBytes = 0, .orphansOlderThan = std::chrono::seconds(0)})) return 5;
    return 0;
  }

  void expectOldOrNew() const {
    const auto store = open();
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      const FoundSegment found = store->find(keyOf(i));
      if (found) {
        EXPECT_TRUE(equal(found.segment->bytes(), bytesOf(i)));
      } else {
        EXPECT_EQ(found.reason, StoreReason::kAbsent);
      }
    }
    const auto plan = store->findPlan(planKey(1));
    if (plan) {
      const auto bytes = (*plan)->bytes();
      EXPECT_TRUE(equal(bytes, payload(100, 2000)) || equal(bytes, payload(101, 3000)));
    } else {
      EXPECT_EQ(plan.error().reason, StoreReason::kAbsent);
    }
    const auto report = store->verifyAll({});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->isComplete);
    EXPECT_EQ(report->wrongPlans + report->wrongSegments, 0u);
  }

  void expectNoLeak() const {
    const auto store = open();
    const auto report = store->prune({.olderThan = std::chrono::seconds(0),
                                      .orphansOlderThan = std::chrono::seconds(0),
                                      .leftoversOlderThan = std::chrono::seconds(0)});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->bytesLeft, 0u);
    const auto inventory = store->inventory();
    EXPECT_TRUE(inventory->segments.empty() && inventory->plans.empty() &&
                inventory->temporaries.empty());
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(!entry.is_regular_file() || name == "build.lock" ||
                  name.starts_with("identity.sqlite") || name == "identity.latest")
          << entry.path();
    }
  }

 private:
  std::vector<std::vector<uint8_t>> payloads_;
};

TEST_F(StoreCrashTest, KilledAtEveryCrashPoint) {
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("object.") && !point.starts_with("segment.") &&
        !point.starts_with("plan.") && !point.starts_with("collector."))
      continue;
    ++points;
    for (const int pass : {1, 2, 4, 7}) {
      SCOPED_TRACE(point + ":" + std::to_string(pass));
      ASSERT_TRUE(open()->publishPlan(planKey(1), payload(100, 2000), {}));
      const int status = endOfCrashing(point + ":" + std::to_string(pass), [&] { return work(); });
      EXPECT_TRUE(wasKilled(status) || (pass > 1 && succeeded(status))) << status;
      expectOldOrNew();
      // The next process can use what is left.
      EXPECT_TRUE(succeeded(waitForChild(startChild([&] { return work(); }))));
      expectNoLeak();
      if (!wasKilled(status)) break;
    }
  }
  EXPECT_GE(points, 9);
}

TEST_F(StoreCrashTest, KilledAtRandomInstantsWhileOthersStart) {
  const int rounds = RandomKiller::rounds(200, 2000);
  RandomKiller killer(12345);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const auto other = [&] {
      // Results are right, whatever the victim left. A collector may remove segments that were
      // found.
      const auto store = WeightStore::open(options());
      if (!store) return 1;
      for (size_t i = 0; i < std::size(kSizes); ++i) {
        BuildTicket ticket = (*store)->acquire(keyOf(i));
        SegmentRef segment = ticket.segment();
        if (segment == nullptr) {
          auto published = (*store)->publish(keyOf(i), bytesOf(i));
          if (!published) return 2;
          segment = *published;
        }
        if (!equal(segment->bytes(), bytesOf(i))) return 3;
      }
      return 0;
    };
    const pid_t others[] = {startChild(other), startChild(other)};
    // The victim is forked last, since forking takes longer than its work in some builds.
    killer.kill(startChild([&] { return work(); }));
    for (const pid_t child : others) EXPECT_TRUE(succeeded(waitForChild(child)));
    expectOldOrNew();
  }
  EXPECT_GT(killer.killed(), rounds / 4);
  expectNoLeak();
}

}  // namespace
}  // namespace hearth::cache

#endif
