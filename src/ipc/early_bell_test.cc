// SPDX-License-Identifier: Apache-2.0
#include "ipc/early_bell.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

namespace hearth::ipc {
namespace {

using std::chrono::microseconds;

// Computations without a clock: the microseconds that each step takes.
class Computations {
 public:
  explicit Computations(std::vector<int> steps) : steps_(std::move(steps)) {}

  // Computes once, `slower` microseconds more than the steps say in the last one. Returns how long
  // before the end the bell rings, if it does.
  std::optional<microseconds> compute(int slower = 0) {
    std::optional<EarlyBell::Clock::time_point> rung;
    const EarlyBell::Clock::time_point begin = now_;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (bell_.isAt(i, steps_.size()) && bell_.reach(now_)) {
        EXPECT_FALSE(rung);
        rung = now_;
      }
      now_ += microseconds(steps_[i]);
    }
    now_ += microseconds(slower);
    bell_.end(now_ - begin, now_);
    if (!rung) return std::nullopt;
    return std::chrono::duration_cast<microseconds>(now_ - *rung);
  }
  // How many of so many computations the bell rings in; each time it is at the right time.
  int ringsOf(int count) {
    int rings = 0;
    for (int i = 0; i < count; ++i) {
      const auto lead = compute();
      if (!lead) continue;
      EXPECT_GE(*lead, EarlyBell::kLeastLead);
      EXPECT_LE(*lead, EarlyBell::kMostLead);
      ++rings;
    }
    return rings;
  }

 private:
  const std::vector<int> steps_;
  EarlyBell bell_;
  EarlyBell::Clock::time_point now_{std::chrono::hours(1)};
};

TEST(EarlyBell, FindsTheStepThatBeginsShortlyBeforeTheEnd) {
  // Equal ones; long ones first, and last; one long one among short ones.
  std::vector<int> rising(50);
  std::iota(rising.begin(), rising.end(), 1);
  const std::vector<int> falling(rising.rbegin(), rising.rend());
  std::vector<int> uneven(100, 5);
  uneven[20] = 3000;
  for (const auto& steps : {std::vector<int>(65, 22), std::vector<int>(1000, 40), rising, falling,
                            uneven, std::vector<int>{700, 60, 60}}) {
    Computations computations(steps);
    // It is known from earlier computations.
    EXPECT_FALSE(computations.compute());
    EXPECT_FALSE(computations.compute());
    computations.ringsOf(100);
    EXPECT_EQ(computations.ringsOf(100), 100);
  }
}

TEST(EarlyBell, DoesNotRingWhereThereIsNoSuchStep) {
  for (const auto& steps :
       {std::vector<int>{}, {1}, {5000}, {700, 700}, {300, 300, 300, 40}, {10, 10, 10}}) {
    Computations computations(steps);
    EXPECT_EQ(computations.ringsOf(100), 0) << steps.size();
  }
}

TEST(EarlyBell, SingleSlowComputationsChangeNothing) {
  Computations computations(std::vector<int>(65, 22));
  computations.ringsOf(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(computations.compute(4000));
    EXPECT_EQ(computations.ringsOf(3), 3);
  }
}

TEST(EarlyBell, FindsAnotherStepWhenComputationsBecomeSlower) {
  Computations computations(std::vector<int>(65, 22));
  computations.ringsOf(20);
  for (int i = 0; i < 20; ++i) computations.compute(70);
  for (int i = 0; i < 20; ++i) {
    const auto lead = computations.compute(70);
    ASSERT_TRUE(lead);
    EXPECT_LE(*lead, EarlyBell::kMostLead);
  }
}

TEST(EarlyBell, FollowsTheNumberOfSteps) {
  EarlyBell bell;
  EarlyBell::Clock::time_point now{std::chrono::hours(1)};
  // Each computation has other steps, and none at all at times.
  for (size_t i = 0; i < 1000; ++i) {
    const size_t steps = i * 7 % 50;
    for (size_t step = 0; step < steps; ++step) {
      if (bell.isAt(step, steps)) bell.reach(now);
      now += microseconds(30);
    }
    bell.end(microseconds(30 * steps), now);
  }
  // What a driver says may be wrong.
  bell.isAt(3, 5);
  bell.end(std::chrono::nanoseconds::max(), now);
  bell.isAt(4, 5);
  bell.end(std::chrono::nanoseconds::min(), now);
  int rings = 0;
  for (int i = 0; i < 10; ++i) {
    for (size_t step = 0; step < 50; ++step) {
      if (bell.isAt(step, 50) && bell.reach(now)) ++rings;
      now += microseconds(30);
    }
    bell.end(microseconds(1500), now);
  }
  EXPECT_EQ(rings, 8);
}

}  // namespace
}  // namespace hearth::ipc
