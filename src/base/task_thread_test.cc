// SPDX-License-Identifier: Apache-2.0
#include "base/task_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/fork_gate.h"

namespace hearth::base {
namespace {

using std::chrono::milliseconds;

constinit std::atomic<bool> mayGoOn = true;
constinit std::atomic<bool> isHeld = false;

// Prevents the thread of `tasks` from running, as busy processors do with an idle thread. Only
// signals of its own faults reach such a thread.
class Starved {
 public:
  explicit Starved(TaskThread& tasks) {
    struct sigaction action{};
    action.sa_handler = [](int) {
      isHeld = true;
      while (!mayGoOn) ::sched_yield();
    };
    ::sigaction(SIGTRAP, &action, &before_);
    std::atomic<pthread_t> thread{};
    std::atomic<bool> isThere = false;
    EXPECT_TRUE(tasks.post([&] {
      thread = ::pthread_self();
      isThere = true;
    }));
    while (!isThere) std::this_thread::yield();
    tasks.waitUntilIdle();
    while (!hold(tasks, thread)) continue;
  }
  ~Starved() {
    mayGoOn = true;
    ::sigaction(SIGTRAP, &before_, nullptr);
  }

 private:
  // False if the signal met the thread before its wait, while it held the lock; the thread was then
  // released.
  static bool hold(TaskThread& tasks, pthread_t thread) {
    constexpr milliseconds kPatience(500);
    mayGoOn = false;
    isHeld = false;
    ::pthread_kill(thread, SIGTRAP);
    while (!isHeld) std::this_thread::yield();
    std::atomic<bool> isFree = false;
    std::thread probe([&] {
      tasks.release();  // locks the mutex
      isFree = true;
    });
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!isFree && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const bool isWithoutLock = isFree;
    if (!isWithoutLock) mayGoOn = true;
    probe.join();
    return isWithoutLock;
  }

  struct sigaction before_{};
};

TEST(TaskThread, TryPostTakesWhatTheLimitLeaves) {
  TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, SIZE_MAX);
  const Starved starved(tasks);
  int done = 0;
  const auto task = [&] {
    ++done;
  };
  EXPECT_TRUE(tasks.tryPost(task, 3, 5));
  EXPECT_FALSE(tasks.tryPost(task, 3, 5));
  EXPECT_TRUE(tasks.tryPost(task, 2, 5));
  EXPECT_FALSE(tasks.tryPost(task, 6, 5));
  tasks.waitUntilIdle();
  EXPECT_EQ(done, 2);
}

// Otherwise a process that exits would wait for its idle threads as long as the machine is busy.
TEST(TaskThread, WaitersRunTheTasksOfAThreadThatGetsNoProcessor) {
  for (const auto priority : {TaskThread::Priority::kNormal, TaskThread::Priority::kIdle}) {
    TaskThread tasks("hearth-test", priority, SIZE_MAX);
    const Starved starved(tasks);
    std::vector<int> done;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(tasks.post([&done, i] { done.push_back(i); }));
    EXPECT_TRUE(tasks.postHeld([&] {
      EXPECT_TRUE(tasks.post([&] { done.push_back(6); }));
      done.push_back(5);
    }));
    tasks.waitUntilIdle();
    EXPECT_EQ(done, (std::vector{0, 1, 2, 3, 4, 5, 6}));
  }
}

TEST(TaskThread, TasksStayInOrderWhenSeveralWait) {
  TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, SIZE_MAX);
  std::vector<int> done;
  std::atomic<int> running = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(tasks.post([&, i] {
      EXPECT_EQ(++running, 1);
      done.push_back(i);
      std::this_thread::yield();
      --running;
    }));
  for (int i = 0; i < 3; ++i) waiters.emplace_back([&] { tasks.waitUntilIdle(); });
  for (std::thread& waiter : waiters) waiter.join();
  ASSERT_EQ(done.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(TaskThread, WaitingEndsAlthoughOthersGoOnPosting) {
  TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, 1);
  std::atomic<bool> isOver = false;
  std::thread poster([&] {
    while (!isOver) EXPECT_TRUE(tasks.post([] {}, 1));
  });
  for (int i = 0; i < 20; ++i) tasks.waitUntilIdle();
  isOver = true;
  poster.join();
}

TEST(TaskThread, WaitingEndsWhenNoTaskEnds) {
  TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, SIZE_MAX);
  std::atomic<bool> hasBegun = false;
  std::atomic<bool> mayEnd = false;
  EXPECT_TRUE(tasks.post([&] {
    hasBegun = true;
    while (!mayEnd) std::this_thread::yield();
  }));
  // Otherwise the waiting thread might run the task itself.
  while (!hasBegun) std::this_thread::yield();
  EXPECT_FALSE(tasks.waitUntilDone(milliseconds(1)));
  mayEnd = true;
  EXPECT_TRUE(tasks.waitUntilDone(std::chrono::minutes(10)));
}

// A program may call exit() in a callback of the library.
TEST(TaskThread, ATaskThatExitsWaitsForTheOthers) {
  std::atomic<int> done = 0;
  std::atomic<bool> wasDone = false;
  {
    TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, SIZE_MAX);
    EXPECT_TRUE(tasks.post([&] {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(tasks.post([&] { ++done; }));
      EXPECT_TRUE(tasks.waitUntilDone(std::chrono::minutes(10)));
      wasDone = done == 3;
    }));
    tasks.waitUntilIdle();
    // The task that waits counted as done meanwhile. The destructor waits for it.
  }
  EXPECT_TRUE(wasDone);
}

TEST(TaskThread, ATaskMayDestroyItsThread) {
  for (const bool finishes : {true, false}) {
    auto tasks =
        std::make_unique<TaskThread>("hearth-test", TaskThread::Priority::kNormal, SIZE_MAX);
    std::atomic<int> done = 0;
    std::atomic<bool> isStopped = false;
    std::atomic<bool> isPosted = false;
    EXPECT_TRUE(tasks->post([&] {
      while (!isPosted) std::this_thread::yield();
      tasks->stop(finishes);
      tasks.reset();
      isStopped = true;
    }));
    EXPECT_TRUE(tasks->post([&] { ++done; }));
    isPosted = true;
    while (!isStopped) std::this_thread::yield();
    EXPECT_EQ(done, finishes ? 1 : 0);
  }
}

// A fork waits for threads inside the gate, and the tasks that would make room may have to enter
// it.
TEST(TaskThread, PostingInsideTheForkGateDoesNotWaitForRoom) {
  TaskThread tasks("hearth-test", TaskThread::Priority::kNormal, 1);
  std::atomic<bool> mayEnd = false;
  EXPECT_TRUE(tasks.post(
      [&] {
        while (!mayEnd) std::this_thread::yield();
      },
      1));
  {
    const base::ForkGate::Inside inside;
    EXPECT_TRUE(tasks.post([] {}, 1));
  }
  mayEnd = true;
  tasks.waitUntilIdle();
}

}  // namespace
}  // namespace hearth::base
