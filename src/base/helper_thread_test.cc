// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/processor.h"

namespace hearth::base {
namespace {

// A recorded call that sets scheduling policy or affinity of a thread.
struct Placement {
  pthread_t thread;
  cpu_set_t allowed;
  int processorOfCaller;  // after the call
};

std::mutex placementsMutex;
std::vector<Placement>* currentPlacements = nullptr;  // guarded by placementsMutex
std::atomic<std::chrono::milliseconds> placementDelay{};

// Records all such calls of any thread as long as this object exists. The processor that a thread
// runs on would prove nothing, since the kernel may move it at any time.
class RecordedPlacements {
 public:
  // Delays each recorded call by `delay`.
  explicit RecordedPlacements(std::chrono::milliseconds delay = {}) {
    const std::lock_guard lock(placementsMutex);
    currentPlacements = &placements_;
    placementDelay = delay;
  }
  ~RecordedPlacements() {
    const std::lock_guard lock(placementsMutex);
    currentPlacements = nullptr;
    placementDelay = std::chrono::milliseconds();
  }
  RecordedPlacements(const RecordedPlacements&) = delete;
  RecordedPlacements& operator=(const RecordedPlacements&) = delete;

  std::vector<Placement> get() const {
    const std::lock_guard lock(placementsMutex);
    return placements_;
  }

 private:
  std::vector<Placement> placements_;
};

}  // namespace
}  // namespace hearth::base

// Overrides the C library's function, records the call and forwards it.
extern "C" int pthread_setschedparam(pthread_t thread, int policy,
                                     const sched_param* parameter) noexcept {
  static const auto set =
      reinterpret_cast<decltype(&::pthread_setschedparam)>(::dlsym(RTLD_NEXT, __func__));
  if (const auto delay = hearth::base::placementDelay.load(); delay.count() > 0)
    std::this_thread::sleep_for(delay);
  return set(thread, policy, parameter);
}

// Overrides the C library's function, too.
extern "C" int pthread_setaffinity_np(pthread_t thread, size_t size,
                                      const cpu_set_t* allowed) noexcept {
  using hearth::base::currentPlacements;
  static const auto place =
      reinterpret_cast<decltype(&::pthread_setaffinity_np)>(::dlsym(RTLD_NEXT, __func__));
  if (const auto delay = hearth::base::placementDelay.load(); delay.count() > 0)
    std::this_thread::sleep_for(delay);
  const int result = place(thread, size, allowed);
  const std::lock_guard lock(hearth::base::placementsMutex);
  if (currentPlacements != nullptr && result == 0)
    currentPlacements->push_back({thread, *allowed, hearth::base::currentProcessor()});
  return result;
}

namespace hearth::base {
namespace {

TEST(HelperThread, RunsUnderItsName) {
  std::string name(16, '\0');
  std::thread thread = startHelperThread(
      "hearth-test", [&name] { ::pthread_getname_np(::pthread_self(), name.data(), name.size()); });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_STREQ(name.c_str(), "hearth-test");
}

// A handler of the program would run on a thread that the program does not know of.
TEST(HelperThread, LeavesSignalsToTheProgram) {
  sigset_t there;
  sigemptyset(&there);
  std::thread thread = startHelperThread(
      "hearth-test", [&there] { ::pthread_sigmask(SIG_SETMASK, nullptr, &there); });
  thread.join();
  EXPECT_TRUE(sigismember(&there, SIGUSR1));
  EXPECT_TRUE(sigismember(&there, SIGTERM));
  EXPECT_FALSE(sigismember(&there, SIGSEGV)) << "faults are the thread's own";

  sigset_t here;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_FALSE(sigismember(&here, SIGUSR1)) << "the caller has its signals back";
}

// The processors on which the calling thread may run.
cpu_set_t allowedProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

// Expects that `placements` move a thread off one of `all` processors, of which there are two or
// more, and then allow that one again.
void expectMovedAndReleased(const std::vector<Placement>& placements, const cpu_set_t& all) {
  ASSERT_EQ(placements.size(), 2u);
  EXPECT_EQ(CPU_COUNT(&placements[0].allowed), CPU_COUNT(&all) - 1);
  EXPECT_TRUE(CPU_EQUAL(&placements[1].allowed, &all));
}

TEST(HelperThread, LeavesTheProcessorAndMayComeBack) {
  const cpu_set_t all = allowedProcessors();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "There is no other processor.";
  std::thread thread([&] {
    // Repeats if the kernel moves the thread between the first two lines.
    for (int round = 0; round < 100; ++round) {
      const RecordedPlacements recorded;
      const int before = currentProcessor();
      ASSERT_GE(before, 0);
      leaveProcessor(before);
      const std::vector<Placement> placements = recorded.get();
      if (placements.empty()) continue;
      expectMovedAndReleased(placements, all);
      EXPECT_FALSE(CPU_ISSET(before, &placements[0].allowed));
      EXPECT_NE(placements[0].processorOfCaller, before);
      return;
    }
    ADD_FAILURE() << "The thread stayed on its processor.";
  });
  thread.join();
}

TEST(HelperThread, StaysOnItsProcessorUnlessAskedToLeave) {
  std::thread thread([] {
    const RecordedPlacements recorded;
    leaveProcessor(-1);
    leaveProcessor(CPU_SETSIZE - 1);  // far beyond the last processor
    EXPECT_TRUE(recorded.get().empty());
  });
  thread.join();
}

TEST(HelperThread, IsMovedAwayAndMayComeBack) {
  const cpu_set_t all = allowedProcessors();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "There is no other processor.";
  const RecordedPlacements recorded;
  cpu_set_t allowed;
  std::atomic<bool> isSent = false;
  std::thread thread = startHelperThread("hearth-test", [&] {
    while (!isSent) std::this_thread::yield();
    allowed = allowedProcessors();
  });
  const std::vector<Placement> placements = recorded.get();
  for (const Placement& placement : placements)
    EXPECT_TRUE(::pthread_equal(placement.thread, thread.native_handle()));
  isSent = true;
  thread.join();
  expectMovedAndReleased(placements, all);
  EXPECT_TRUE(CPU_EQUAL(&allowed, &all));
}

// The number of a thread that has ended is 0, which the kernel takes for the calling thread: that
// thread would be moved, get its processor back, or become idle.
TEST(HelperThread, NeverMovesItsStarterEvenIfItEndsAtOnce) {
  for (const auto start : {startHelperThread, startIdleThread})
    for (const auto processors : {Processors::kOfProcess, Processors::kOfCaller}) {
      cpu_set_t own;
      CPU_ZERO(&own);
      cpu_set_t after;
      int policy = -1;
      std::thread maker([&] {
        CPU_SET(currentProcessor(), &own);
        ASSERT_EQ(::sched_setaffinity(0, sizeof own, &own), 0);
        const RecordedPlacements recorded(std::chrono::milliseconds(20));
        start("hearth-test", [] {}, processors).join();
        after = allowedProcessors();
        policy = ::sched_getscheduler(0);
      });
      maker.join();
      EXPECT_TRUE(CPU_EQUAL(&after, &own));
      EXPECT_EQ(policy, SCHED_OTHER);
    }
}

// An idle thread may share the processor of the thread that started it.
TEST(HelperThread, IsNotMovedAwayIfItIsIdle) {
  const RecordedPlacements recorded;
  startIdleThread("hearth-test", [] {}).join();
  EXPECT_TRUE(recorded.get().empty());
}

TEST(HelperThread, IsIdleFromTheBeginning) {
  int policy = -1;
  sigset_t there;
  sigemptyset(&there);
  std::thread thread = startIdleThread("hearth-test", [&] {
    policy = ::sched_getscheduler(0);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &there);
  });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_EQ(policy, SCHED_IDLE);
  EXPECT_TRUE(sigismember(&there, SIGUSR1));
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER) << "the caller keeps its own";
}

// An idle thread may not run for long, so its starter gives it its name, and keeps its own name.
TEST(HelperThread, HasItsNameBeforeItsFirstTurnIfItIsIdle) {
  std::array<char, 16> before{};
  std::array<char, 16> after{};
  std::array<char, 16> its{};
  ASSERT_EQ(::prctl(PR_GET_NAME, before.data()), 0);
  std::atomic<bool> isRead = false;
  std::thread thread = startIdleThread("hearth-test", [&] {
    while (!isRead) std::this_thread::yield();
  });
  ASSERT_TRUE(thread.joinable());
  EXPECT_EQ(::pthread_getname_np(thread.native_handle(), its.data(), its.size()), 0);
  isRead = true;
  thread.join();
  EXPECT_STREQ(its.data(), "hearth-test");
  ASSERT_EQ(::prctl(PR_GET_NAME, after.data()), 0);
  EXPECT_STREQ(after.data(), before.data());
}

// Otherwise a thread for which the process waits at its end would be idle, or real-time, like the
// thread that started it.
TEST(HelperThread, HasOrdinarySchedulingWhateverItsStarterHas) {
  const sched_param none{};
  sched_param realTime{};
  realTime.sched_priority = 1;
  int tried = 0;
  for (const int policy : {SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE}) {
    bool isLeft = false;
    int seen = -1;
    std::thread maker([&] {
      const bool isRealTime = policy == SCHED_FIFO || policy == SCHED_RR;
      if (::sched_setscheduler(0, policy, isRealTime ? &realTime : &none) != 0) return;
      std::thread helper =
          startHelperThread("hearth-test", [&] { seen = ::sched_getscheduler(0); });
      helper.join();
      // Not every process is allowed to leave SCHED_IDLE.
      isLeft = ::sched_setscheduler(0, SCHED_OTHER, &none) == 0;
    });
    maker.join();
    if (seen < 0 || !isLeft) continue;
    EXPECT_EQ(seen, SCHED_OTHER) << policy;
    ++tried;
  }
  EXPECT_GE(tried, 1);
}

TEST(HelperThread, HasTheMainThreadsPriorityAndTheStandardTimerSlack) {
  int nice = -1;
  int slack = -1;
  bool mayRaise = false;
  std::thread maker([&] {
    ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 3);
    ::prctl(PR_SET_TIMERSLACK, 1'000'000ul);
    std::thread helper = startHelperThread("hearth-test", [&] {
      nice = ::getpriority(PRIO_PROCESS, 0);
      slack = ::prctl(PR_GET_TIMERSLACK);
    });
    helper.join();
    mayRaise = ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, ::getpid())) == 0;
  });
  maker.join();
  if (mayRaise) {
    EXPECT_EQ(nice, ::getpriority(PRIO_PROCESS, 0));
  }
  EXPECT_EQ(slack, 50'000);
}

TEST(HelperThread, UsesTheProcessorsOfTheProcessOrOfItsStarter) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  for (const auto processors : {Processors::kOfProcess, Processors::kOfCaller})
    for (const auto start : {startHelperThread, startIdleThread}) {
      cpu_set_t own;
      cpu_set_t allowed;
      std::atomic<bool> isStarted = false;
      std::thread maker([&] {
        CPU_ZERO(&own);
        CPU_SET(currentProcessor(), &own);
        ASSERT_EQ(::sched_setaffinity(0, sizeof own, &own), 0);
        std::thread helper = start(
            "hearth-test",
            [&] {
              while (!isStarted) std::this_thread::yield();
              ::sched_getaffinity(0, sizeof allowed, &allowed);
            },
            processors);
        isStarted = true;
        helper.join();
      });
      maker.join();
      EXPECT_TRUE(CPU_EQUAL(&allowed, processors == Processors::kOfProcess ? &all : &own));
    }
}

TEST(HelperThread, StaysWhereThereIsNoOtherProcessor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::thread thread([&] {
    CPU_SET(currentProcessor(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const RecordedPlacements recorded;
    leaveProcessor(currentProcessor());
    EXPECT_TRUE(recorded.get().empty());
    ::sched_getaffinity(0, sizeof allowed, &allowed);
  });
  thread.join();
  EXPECT_TRUE(CPU_EQUAL(&allowed, &one));
}

}  // namespace
}  // namespace hearth::base
