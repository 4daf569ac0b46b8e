// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/processor.h"

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

// A handler of the program would run on a thread that it knows nothing of.
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

TEST(HelperThread, LeavesTheProcessorAndMayComeBack) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int before = -1;
  int after = -1;
  std::thread thread([&] {
    before = currentProcessor();
    leaveProcessor(before);
    after = currentProcessor();
    ::sched_getaffinity(0, sizeof allowed, &allowed);
  });
  thread.join();
  EXPECT_TRUE(CPU_EQUAL(&allowed, &all));
  EXPECT_GE(before, 0);
  EXPECT_GE(after, 0);
}

TEST(HelperThread, IsSentAwayAndMayComeBack) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> isSent = false;
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    std::thread thread = startHelperThread("hearth-test", [&] {
      while (!isSent) std::this_thread::yield();
      ::sched_getaffinity(0, sizeof allowed, &allowed);
    });
    isSent = true;
    thread.join();
    EXPECT_TRUE(CPU_EQUAL(&allowed, &all)) << round;
  }
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

// Else what a process waits for at its end would be idle, or run in real time, after whoever was
// the first to need it.
TEST(HelperThread, HasOrdinarySchedulingWhateverItsMakerHas) {
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
      // Not everybody may leave SCHED_IDLE.
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

TEST(HelperThread, MayLeaveItsMakersProcessorsWhereItWorksForAll) {
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
    leaveProcessor(currentProcessor());
    ::sched_getaffinity(0, sizeof allowed, &allowed);
  });
  thread.join();
  EXPECT_TRUE(CPU_EQUAL(&allowed, &one));
}

}  // namespace
}  // namespace hearth::base
