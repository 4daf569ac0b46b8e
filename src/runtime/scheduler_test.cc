// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <string>

#include "runtime/event.h"

// The scheduler starts threads in a forked child on purpose. The function is exported, so that the
// sanitizer's library finds it.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
const char* __tsan_default_options() {
  return "die_after_fork=0";
}

namespace hearth::runtime {
namespace {

TEST(SchedulerTest, StartsHigherPrioritiesFirst) {
  std::string order;
  {
    Event blocked;
    Event release;
    Scheduler scheduler(1);
    ASSERT_TRUE(scheduler.submit(hal::Priority::kLow, [&] {
      blocked.complete({});
      release.wait({});
    }));
    // The only thread is busy now, so the rest queues up behind it.
    blocked.wait({});
    ASSERT_TRUE(scheduler.submit(hal::Priority::kLow, [&] { order += 'l'; }));
    ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [&] { order += '1'; }));
    ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [&] { order += '2'; }));
    ASSERT_TRUE(scheduler.submit(hal::Priority::kHigh, [&] { order += 'h'; }));
    release.complete({});
  }
  EXPECT_EQ(order, "h12l");
}

// An exception in a task must not end the thread.
TEST(SchedulerTest, GoesOnAfterWorkThatThrows) {
  Scheduler scheduler(1);
  Event done;
  ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [] { throw std::bad_alloc(); }));
  ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [&] { done.complete({}); }));
  EXPECT_TRUE(done.wait({}).has_value());
}

TEST(EventTest, RunsAllCallbacksAlthoughOneThrows) {
  Event event;
  int called = 0;
  event.whenDone([&](const Status&) {
    ++called;
    throw std::bad_alloc();
  });
  event.whenDone([&](const Status&) { ++called; });
  event.complete({});
  EXPECT_EQ(called, 2);
}

TEST(SchedulerTest, RunsAtOnceUpToItsThreads) {
  constexpr int kThreads = 3;
  constexpr int kTasks = 30;
  Event arrived[kTasks];
  Event release;
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  Scheduler scheduler(kThreads);
  for (Event& event : arrived) {
    ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [&] {
      int before = most;
      for (const int now = ++running; before < now && !most.compare_exchange_weak(before, now);) {
      }
      event.complete({});
      release.wait({});
      --running;
    }));
  }
  // The first three run at once; the rest wait for a free thread.
  const auto soon = base::Deadline::after(60'000'000'000);
  for (int i = 0; i < kThreads; ++i) EXPECT_TRUE(arrived[i].wait(soon).has_value()) << i;
  for (int i = kThreads; i < kTasks; ++i) EXPECT_FALSE(arrived[i].isDone()) << i;
  release.complete({});
  for (const Event& event : arrived) EXPECT_TRUE(event.wait(soon).has_value());
  EXPECT_EQ(most, kThreads);
}

TEST(SchedulerTest, FinishesWhatIsQueued) {
  std::atomic<int> count = 0;
  {
    Scheduler scheduler(2);
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(scheduler.submit(hal::Priority::kMedium, [&count] { ++count; }));
  }
  EXPECT_EQ(count, 100);
}

TEST(SchedulerTest, WorksInAForkedChild) {
  Event before;
  ASSERT_TRUE(
      Scheduler::shared().submit(hal::Priority::kMedium, [&before] { before.complete({}); }));
  before.wait({});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Event event;
    const Status submitted =
        Scheduler::shared().submit(hal::Priority::kMedium, [&event] { event.complete({}); });
    const bool isDone = submitted && event.wait(base::Deadline::after(30'000'000'000)).has_value();
    _exit(isDone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hearth::runtime
