// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

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
