// SPDX-License-Identifier: Apache-2.0
#include "hal/fenced_thread.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>
#include <utility>

namespace hearth::hal {
namespace {

using testing::HasSubstr;

base::Descriptor closedFence() {
  return base::Descriptor(::eventfd(0, EFD_CLOEXEC));
}

std::vector<base::Descriptor> duplicates(const std::vector<const base::Descriptor*>& fences) {
  std::vector<base::Descriptor> duplicated;
  for (const base::Descriptor* const fence : fences) {
    auto copy = fence->duplicate();
    EXPECT_TRUE(copy) << copy.error().toString();
    duplicated.push_back(std::move(*copy));
  }
  return duplicated;
}

bool isReadable(const base::Descriptor& fence, int milliseconds = 0) {
  pollfd polled{fence.get(), POLLIN, 0};
  return ::poll(&polled, 1, milliseconds) == 1 && (polled.revents & POLLIN) != 0;
}

class FencedThreadTest : public testing::Test {
 protected:
  // Starts what counts its calls and measures a time.
  base::Descriptor start(std::vector<base::Descriptor> fences,
                         const base::Deadline& deadline = {}) {
    auto fence = thread_.start(std::move(fences), deadline, [this](const base::Deadline&) {
      ++calls_;
      ExecutionResult result;
      result.timing = {5, 7};
      return result;
    });
    EXPECT_TRUE(fence) << fence.error().toString();
    return fence ? std::move(*fence) : base::Descriptor();
  }

  std::atomic<int> calls_ = 0;
  FencedThread thread_;
};

TEST_F(FencedThreadTest, ComputesOnceAllFencesAreReadable) {
  const base::Descriptor first = closedFence();
  const base::Descriptor second = closedFence();
  const base::Descriptor fence = start(duplicates({&first, &second}));
  ASSERT_EQ(::eventfd_write(second.get(), 1), 0);
  EXPECT_FALSE(isReadable(fence, 20));
  EXPECT_EQ(calls_, 0);
  ASSERT_EQ(::eventfd_write(first.get(), 1), 0);
  const ExecutionResult result = thread_.finish();
  EXPECT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(result.timing.inDriver, 7u);
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(isReadable(fence));
}

TEST_F(FencedThreadTest, ComputesAgainAndAgain) {
  for (int round = 1; round <= 3; ++round) {
    const base::Descriptor fence = start({});
    EXPECT_TRUE(isReadable(fence, 60'000));
    EXPECT_TRUE(thread_.finish().status);
    EXPECT_EQ(calls_, round);
  }
  const ExecutionResult none = thread_.finish();
  ASSERT_FALSE(none.status);
  EXPECT_EQ(none.status.error().code(), ErrorCode::kBadState);
}

TEST_F(FencedThreadTest, RunsOneComputationAtATime) {
  const base::Descriptor closed = closedFence();
  start(duplicates({&closed}));
  const auto second =
      thread_.start({}, {}, [](const base::Deadline&) { return ExecutionResult(); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kBadState);
  ASSERT_EQ(::eventfd_write(closed.get(), 1), 0);
  EXPECT_TRUE(thread_.finish().status);
  EXPECT_EQ(calls_, 1);
}

TEST_F(FencedThreadTest, AFenceThatReportsAnErrorFailsTheComputation) {
  // The end of a pipe that nobody reads reports one.
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::close(ends[0]), 0);
  const base::Descriptor broken(ends[1]);
  const base::Descriptor fence = start(duplicates({&broken}));
  EXPECT_TRUE(isReadable(fence, 60'000));
  const ExecutionResult result = thread_.finish();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed);
  EXPECT_THAT(result.status.error().message(), HasSubstr("reports an error"));
  EXPECT_EQ(calls_, 0);
}

TEST_F(FencedThreadTest, TheDeadlineMayPassWhileItWaits) {
  const base::Descriptor closed = closedFence();
  const base::Descriptor fence = start(duplicates({&closed}), base::Deadline::after(1'000'000));
  EXPECT_TRUE(isReadable(fence, 60'000));
  const ExecutionResult result = thread_.finish();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_EQ(calls_, 0);
}

TEST_F(FencedThreadTest, WhatIsThrownIsAnError) {
  const auto fence = thread_.start(
      {}, {}, [](const base::Deadline&) -> ExecutionResult { throw std::bad_alloc(); });
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_TRUE(isReadable(*fence, 60'000));
  const ExecutionResult result = thread_.finish();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutOfMemory);
}

TEST_F(FencedThreadTest, StopGivesUpAWaitForFences) {
  const base::Descriptor never = closedFence();
  const base::Descriptor fence = start(duplicates({&never}));
  thread_.stop();
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(isReadable(fence));
}

TEST_F(FencedThreadTest, AFenceThatNobodyHasAnyMoreIsSignalledAllTheSame) {
  const base::Descriptor closed = closedFence();
  start(duplicates({&closed})).reset();
  ASSERT_EQ(::eventfd_write(closed.get(), 1), 0);
  // Without a reader, a write to a pipe would end the process.
  EXPECT_TRUE(thread_.finish().status);
}

}  // namespace
}  // namespace hearth::hal
