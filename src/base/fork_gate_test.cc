// SPDX-License-Identifier: Apache-2.0
#include "base/fork_gate.h"

#include <cxxabi.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fork_test_util.h"
#include "base/immortal.h"
#include "base/mutex.h"

// Identifies this program as the owner of functions to call at exit (Itanium C++ ABI, 3.3.6.3).
extern "C" __attribute__((visibility("hidden"))) char programHandle __asm__("__dso_handle");

namespace hearth::base {
namespace {

// Runs `work` in a child process and returns its exit status; -1 when the child was killed, which
// happens after a minute.
template <typename Work>
int inChild(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work());
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Threads that repeat their work as long as this object exists.
class Threads {
 public:
  Threads() = default;
  ~Threads() {
    isOver_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  template <typename Work>
  void repeat(Work work) {
    threads_.emplace_back([this, work] {
      while (!isOver_) work();
    });
  }

 private:
  std::atomic<bool> isOver_ = false;
  std::vector<std::thread> threads_;
};

// Blocks a fork between two handlers that run before it.
std::atomic<bool> isForkReached = false;
std::atomic<bool> isForkReleased = false;

// What exit() does while another thread forks.
TEST(ForkGate, AForkGoesOnWhileTheProgramIsFinalised) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  EXPECT_EQ(inChild([] {
              ::pthread_atfork(
                  [] {
                    isForkReached = true;
                    while (!isForkReleased) ::usleep(100);
                  },
                  nullptr, nullptr);
              int status = -1;
              std::thread forker([&] { status = inChild([] { return 7; }); });
              while (!isForkReached) ::usleep(100);
              abi::__cxa_finalize(&programHandle);
              isForkReleased = true;
              forker.join();
              return status;
            }),
            7);
}

// With std::mutex some of these children would find the lock taken.
TEST(ForkGate, AChildFindsNoLockHeldAndNoUpdateHalfDone) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  Mutex mutex;
  int first = 0;
  int second = 0;
  Threads threads;
  for (int i = 0; i < 3; ++i)
    threads.repeat([&] {
      const std::lock_guard lock(mutex);
      ++first;
      std::this_thread::yield();
      ++second;
    });
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(inChild([&] {
                const std::lock_guard lock(mutex);
                return first == second ? 0 : 1;
              }),
              0);
}

TEST(ForkGate, AChildMayUseAConditionOnWhichItsParentsThreadsWait) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  Mutex mutex;
  Condition changed;
  uint64_t turns = 0;
  Threads threads;
  for (int i = 0; i < 3; ++i)
    threads.repeat([&] {
      std::unique_lock lock(mutex);
      ++turns;
      changed.notify_all();
      changed.wait_until(lock, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
    });
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(inChild([&] {
                std::unique_lock lock(mutex);
                const uint64_t before = turns;
                std::thread other([&] {
                  const std::lock_guard inner(mutex);
                  ++turns;
                  changed.notify_all();
                });
                changed.wait(lock, [&] { return turns != before; });
                lock.unlock();
                other.join();
                return 0;
              }),
              0);
}

TEST(ForkGate, AThreadInsideMayEnterAgain) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  Mutex outer;
  Mutex inner;
  Threads threads;
  for (int i = 0; i < 3; ++i)
    threads.repeat([&] {
      const std::lock_guard first(outer);
      std::this_thread::yield();
      const std::lock_guard second(inner);
    });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(inChild([] { return 0; }), 0);
}

// A thread inside the gate waits for tasks of other threads, which lock mutexes, too.
TEST(ForkGate, LetsInTasksForWhichAThreadInsideWaits) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  Mutex mutex;
  Threads threads;
  threads.repeat([&] {
    const ForkGate::Inside inside;
    std::thread task([&, isInside = ForkGate::isInside()] {
      const ForkGate::OnBehalf behalf(isInside);
      std::this_thread::yield();
      const std::lock_guard lock(mutex);
    });
    task.join();
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(inChild([] { return 0; }), 0);
}

TEST(ForkGate, AThreadInsideMayFork) {
  Mutex mutex;
  const std::lock_guard lock(mutex);
  EXPECT_EQ(inChild([&] { return mutex.try_lock() ? 1 : 0; }), 0);
  EXPECT_TRUE(ForkGate::isInside());
}

TEST(ForkGate, SeveralThreadsForkAtOnce) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        if (inChild([] { return 0; }) != 0) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

std::vector<int> calls;

TEST(ForkGate, CallsHandlersAroundForks) {
  static bool isAdded = false;
  if (!isAdded)
    ForkGate::atFork({.before = [] { calls.push_back(1); },
                      .afterInParent = [] { calls.push_back(2); },
                      .afterInChild =
                          [] {
                            calls.push_back(3);
                          }});
  isAdded = true;
  calls.clear();
  const uint32_t generation = ForkGate::generation();
  EXPECT_EQ(inChild([&] {
              const bool isRight = calls == std::vector{1, 3};
              return isRight && ForkGate::generation() == generation + 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(calls, (std::vector{1, 2}));
  EXPECT_EQ(ForkGate::generation(), generation);
}

TEST(ForkGate, AChildFindsCompleteObjectsThatAnotherThreadWasCreating) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  struct Slow {
    Slow() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }
    int value = 7;
  };
  for (int i = 0; i < 20; ++i) {
    auto* const slow = new Immortal<Slow>;
    std::atomic<bool> isBegun = false;
    std::thread maker([&] {
      isBegun = true;
      EXPECT_EQ(slow->get().value, 7);
    });
    while (!isBegun) std::this_thread::yield();
    EXPECT_EQ(inChild([&] { return slow->get().value - 7; }), 0);
    maker.join();
    delete &slow->get();
    delete slow;
  }
}

TEST(Condition, ReturnsAtItsTime) {
  Mutex mutex;
  Condition changed;
  std::unique_lock lock(mutex);
  const auto when = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  EXPECT_FALSE(changed.wait_until(lock, when, [] { return false; }));
  EXPECT_GE(std::chrono::steady_clock::now(), when);
  EXPECT_FALSE(changed.wait_until(lock, {}, [] { return false; })) << "long ago";
  EXPECT_TRUE(changed.wait_until(lock, when, [] { return true; }));
}

}  // namespace
}  // namespace hearth::base
