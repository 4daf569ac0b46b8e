// SPDX-License-Identifier: Apache-2.0
// Several processes and threads use one store.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/fork_test_util.h"
#include "cache/testing/memory_store_test.h"
#include "cache/testing/shared_with_children.h"

namespace hearth::cache {
namespace {

constexpr int kSegments = 24;

size_t sizeOf(int index) {
  return index % 6 == 0 ? (2u << 20) + 99 : 3000u + 100 * static_cast<size_t>(index);
}

class StoreProcessTest : public MemoryStoreTest {
 protected:
  struct Shared {
    std::atomic<int> builds[kSegments];
    std::atomic<int> ready;
    std::atomic<bool> go;
  };

  // A cold start; returns 0 when all segments are right.
  int start(WeightStore& store) const {
    for (int i = 0; i < kSegments; ++i) {
      const SegmentKey key = segmentKey(static_cast<uint64_t>(i));
      const std::vector<uint8_t> right = payload(static_cast<uint64_t>(i), sizeOf(i));
      BuildTicket ticket = store.acquire(key, std::chrono::seconds(120));
      SegmentRef segment = ticket.segment();
      if (ticket.role() == BuildTicket::Role::kAlone) return 1;
      if (ticket.role() == BuildTicket::Role::kBuild) {
        shared_->builds[i].fetch_add(1);
        auto published = store.publish(key, right);
        if (!published) return 2;
        segment = *published;
      }
      if (segment == nullptr || !equal(segment->bytes(), right)) return 3;
    }
    return 0;
  }

  SharedWithChildren<Shared> shared_;
};

TEST_F(StoreProcessTest, SixteenProcessesStartColdWithOneBuilderForEachSegment) {
  inProcesses(16, [&] {
    const auto store = WeightStore::open(options());
    return store ? start(**store) : 9;
  });
  for (const std::atomic<int>& builds : shared_->builds) EXPECT_EQ(builds.load(), 1);
  EXPECT_EQ(open()->inventory()->temporaries.size(), 0u);
}

TEST_F(StoreProcessTest, ThreadsShareOneBuilderForEachSegment) {
  const auto store = open();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      waitForOthers(shared_->ready, 8);
      if (start(*store) != 0) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  for (const std::atomic<int>& builds : shared_->builds) EXPECT_EQ(builds.load(), 1);
  EXPECT_EQ(store->counters().segmentsWritten, static_cast<uint64_t>(kSegments));
}

TEST_F(StoreProcessTest, ThreadsPublishFindPlanAndPruneAtOnce) {
  const auto store = open();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 30; ++i) {
        const auto segment = store->publish(segmentKey(i), payload(i, 1000));
        if (!segment || !equal((*segment)->bytes(), payload(i, 1000))) ++failures;
        if (!store->publishPlan(planKey(i), payload(i, 50), std::vector{segmentKey(i)})) ++failures;
        (void)store->findPlan(planKey(i));
        if (i % 10 == thread) (void)store->prune({.maxBytes = 20'000});
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  store->settle();
  const auto report = store->verifyAll({});
  EXPECT_EQ(report->wrongPlans + report->wrongSegments, 0u);
}

TEST_F(StoreProcessTest, AnotherProcessTakesOverFromABuilderThatDies) {
  const pid_t builder = startChild([&] {
    const auto store = WeightStore::open(options());
    const BuildTicket ticket = (*store)->acquire(segmentKey(1));
    shared_->ready = ticket.role() == BuildTicket::Role::kBuild ? 1 : 2;
    ::pause();
    return 0;
  });
  waitUntil(shared_->ready, 1);
  ASSERT_EQ(shared_->ready.load(), 1);
  // While the builder lives, no other process builds with a ticket; a process that has waited too
  // long builds for itself.
  EXPECT_EQ(open()->acquire(segmentKey(1), std::chrono::milliseconds(30)).role(),
            BuildTicket::Role::kAlone);
  EXPECT_EQ(open()->acquire(segmentKey(2)).role(), BuildTicket::Role::kBuild);
  std::thread killer([&] {
    ::usleep(20'000);
    ::kill(builder, SIGKILL);
    waitForChild(builder);
  });
  EXPECT_EQ(open()->acquire(segmentKey(1), std::chrono::seconds(120)).role(),
            BuildTicket::Role::kBuild);
  killer.join();
}

TEST_F(StoreProcessTest, AForkedChildUsesTheStoreAndLeavesTheParentsLocks) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  const auto store = open();
  ASSERT_TRUE(store->publish(segmentKey(1), payload(1, 5000)));
  const FoundSegment mapped = store->find(segmentKey(1));
  BuildTicket ticket = store->acquire(segmentKey(2));
  ASSERT_EQ(ticket.role(), BuildTicket::Role::kBuild);
  const pid_t child = startChild([&] {
    if (!equal(mapped.segment->bytes(), payload(1, 5000))) return 1;
    if (store->find(segmentKey(1)).segment != mapped.segment) return 2;
    // The parent is still building this segment, whatever the child does with its copy of the
    // ticket.
    ticket.release();
    if (store->acquire(segmentKey(2), std::chrono::milliseconds(20)).role() !=
        BuildTicket::Role::kAlone)
      return 3;
    if (!store->publish(segmentKey(3), payload(3, 5000))) return 4;
    if (!store->publishPlan(planKey(3), payload(4, 10), {})) return 5;
    store->settle();
    return store->counters().segmentsWritten == 1 ? 0 : 6;
  });
  EXPECT_EQ(waitForChild(child), 0);
  EXPECT_TRUE(store->find(segmentKey(3)));
  EXPECT_TRUE(store->publish(segmentKey(2), payload(2, 10)));
  store->settle();
}

TEST_F(StoreProcessTest, AChildDoesNotKeepADeadParentsBuildAlive) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  const pid_t parent = startChild([&] {
    const auto store = WeightStore::open(options());
    const BuildTicket ticket = (*store)->acquire(segmentKey(1));
    const pid_t child = startChild([&] {
      shared_->ready = 1;
      while (!shared_->go.load()) ::usleep(200);
      return 0;
    });
    waitUntil(shared_->ready, 1);
    (void)child;
    ::kill(::getpid(), SIGKILL);
    return 1;
  });
  EXPECT_TRUE(wasKilled(waitForChild(parent)));
  EXPECT_EQ(open()->acquire(segmentKey(1), std::chrono::seconds(120)).role(),
            BuildTicket::Role::kBuild);
  shared_->go = true;
}

TEST_F(StoreProcessTest, APlanThatAnotherProcessHasLoadedStays) {
  {
    const auto store = open();
    for (uint64_t i = 1; i <= 2; ++i) {
      ASSERT_TRUE(store->publish(segmentKey(i), payload(i, 20'000)));
      ASSERT_TRUE(store->publishPlan(planKey(i), payload(i, 10), std::vector{segmentKey(i)}));
    }
  }
  const pid_t user = startChild([&] {
    const auto store = WeightStore::open(options());
    const auto plan = (*store)->findPlan(planKey(1));
    shared_->ready = plan ? 1 : 2;
    while (!shared_->go.load()) ::usleep(200);
    return 0;
  });
  waitUntil(shared_->ready, 1);
  const auto store = open();
  const auto report = store->prune({.maxBytes = 0});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->plans, 1u);
  EXPECT_EQ(report->segments, 1u);
  EXPECT_TRUE(store->find(segmentKey(1)));
  EXPECT_EQ(store->find(segmentKey(2)).reason, StoreReason::kAbsent);
  shared_->go = true;
  waitForChild(user);
  EXPECT_EQ(store->prune({.maxBytes = 0})->plans, 1u);
}

}  // namespace
}  // namespace hearth::cache
