// SPDX-License-Identifier: Apache-2.0
#include "ipc/end_forecast.h"

#include <gtest/gtest.h>

namespace hearth::ipc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = EndForecast::Clock;

const Clock::time_point kStart = Clock::time_point(std::chrono::hours(1));

// A forecast after waits that all took so long.
EndForecast after(Clock::duration time) {
  EndForecast forecast([] { return true; });
  for (size_t i = 0; i < ExpectedTime::kKnown; ++i) forecast.add(kStart, kStart + time);
  return forecast;
}

TEST(EndForecastTest, LongWaitsSleepUntilShortlyBeforeTheirEnd) {
  EndForecast forecast = after(milliseconds(2));
  const auto plan = forecast.planFor(kStart);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->wake, kStart + microseconds(1900));
  // A timer that fires later is set earlier, and not at once so where it fires earlier.
  forecast.woke(microseconds(120));
  EXPECT_EQ(forecast.planFor(kStart)->wake, kStart + microseconds(1890));
  forecast.woke(microseconds(30));
  EXPECT_EQ(forecast.planFor(kStart)->wake, kStart + microseconds(1900));
  EXPECT_EQ(forecast.planFor(kStart)->until, kStart + microseconds(2150));
}

TEST(EndForecastTest, ShortWaitsAreSpunAsAWhole) {
  EndForecast forecast = after(microseconds(60));
  const auto plan = forecast.planFor(kStart);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->wake, kStart);
  EXPECT_EQ(plan->until, kStart + microseconds(110));
  const auto longer = after(microseconds(120)).planFor(kStart);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->until, kStart + EndForecast::kMostSpun);
}

TEST(EndForecastTest, TheShortestWaitsNeedNoPlan) {
  EXPECT_FALSE(after(microseconds(5)).planFor(kStart));
}

TEST(EndForecastTest, NothingIsPlannedWhereTheOtherEndTellsNothing) {
  EndForecast forecast = after(milliseconds(1));
  forecast.add(kStart, std::nullopt);
  EXPECT_FALSE(forecast.planFor(kStart));
  forecast.add(kStart, kStart + milliseconds(1));
  EXPECT_TRUE(forecast.planFor(kStart));
}

TEST(EndForecastTest, PlansThatFailAreMadeLessAndLessOften) {
  EndForecast forecast = after(microseconds(60));
  int plans = 0;
  for (int wait = 0; wait < 1000; ++wait) {
    if (!forecast.planFor(kStart)) continue;
    ++plans;
    forecast.spun(false);
  }
  // After 1, 2, 4 and so on to 64, and from then on one of 65.
  EXPECT_EQ(plans, 7 + (1000 - 127 - 7 + 64) / 65);
  while (!forecast.planFor(kStart)) continue;
  forecast.spun(true);
  EXPECT_TRUE(forecast.planFor(kStart));
  forecast.spun(false);
  EXPECT_FALSE(forecast.planFor(kStart));
  EXPECT_TRUE(forecast.planFor(kStart));
}

TEST(EndForecastTest, NothingIsPlannedWhereNoProcessorIsIdle) {
  bool isIdle = false;
  int looks = 0;
  EndForecast forecast([&] {
    ++looks;
    return isIdle;
  });
  for (size_t i = 0; i < ExpectedTime::kKnown; ++i) forecast.add(kStart, kStart + milliseconds(1));
  EXPECT_FALSE(forecast.planFor(kStart));
  isIdle = true;
  EXPECT_FALSE(forecast.planFor(kStart + EndForecast::kLook - microseconds(1)));
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(forecast.planFor(kStart + EndForecast::kLook));
  isIdle = false;
  EXPECT_TRUE(forecast.planFor(kStart + 2 * EndForecast::kLook - microseconds(1)));
  EXPECT_FALSE(forecast.planFor(kStart + 2 * EndForecast::kLook));
  EXPECT_EQ(looks, 3);
}

TEST(EndForecastTest, WhoIsInterruptedRests) {
  EndForecast forecast = after(microseconds(60));
  forecast.interrupted(kStart);
  EXPECT_FALSE(forecast.planFor(kStart + EndForecast::kRest - microseconds(1)));
  EXPECT_TRUE(forecast.planFor(kStart + EndForecast::kRest));
}

}  // namespace
}  // namespace hearth::ipc
