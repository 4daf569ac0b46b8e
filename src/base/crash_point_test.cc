// SPDX-License-Identifier: Apache-2.0
#include "base/crash_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#ifdef HEARTH_TEST_HOOKS

namespace hearth::base {
namespace {

void passFirst() {
  HEARTH_CRASH_POINT("test.first");
}

template <int>
[[maybe_unused]] void passInTemplate() {
  HEARTH_CRASH_POINT("test.in_template");
}
[[maybe_unused]] void neverCalled() {
  HEARTH_CRASH_POINT("test.never_passed");
  passInTemplate<1>();
}

// Passes the point `passes` times in a child process with this value of the variable; returns its
// wait status.
int statusOfChild(const char* value, int passes) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HEARTH_CRASH_AT", value, 1);
    internal::crashArmed = -1;
    for (int i = 0; i < passes; ++i) passFirst();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool wasKilled(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST(CrashPoint, KillsAtItsNameOnly) {
  EXPECT_TRUE(wasKilled(statusOfChild("test.first", 1)));
  for (const char* other : {"", "test.other", "test", "test.first.more"}) {
    const int status = statusOfChild(other, 3);
    ASSERT_TRUE(WIFEXITED(status)) << other;
    EXPECT_EQ(WEXITSTATUS(status), 7);
  }
}

TEST(CrashPoint, KillsAtTheNthPass) {
  EXPECT_FALSE(wasKilled(statusOfChild("test.first:3", 2)));
  EXPECT_TRUE(wasKilled(statusOfChild("test.first:3", 3)));
}

TEST(CrashPoint, AllPointsAreListedWithoutBeingPassed) {
  EXPECT_THAT(crashPoints(),
              testing::IsSupersetOf({"test.first", "test.in_template", "test.never_passed"}));
}

}  // namespace
}  // namespace hearth::base

#endif
