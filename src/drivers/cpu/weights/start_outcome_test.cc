// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/start_outcome.h"

#include <gtest/gtest.h>

#include "hal/start_reason.h"

namespace hearth::cpu {
namespace {

using State = hal::StartReport::State;

hal::StartReport reportOf(const StartOutcome& outcome) {
  hal::StartReport report;
  outcome.describe(&report);
  return report;
}

TEST(StartOutcomeTest, AStartOfWhichNothingIsKnownIsUncached) {
  const hal::StartReport report = reportOf(StartOutcome());
  EXPECT_EQ(report.state, State::kUncached);
  EXPECT_EQ(report.reason, "");
}

TEST(StartOutcomeTest, AWarmStartHasNoReason) {
  StartOutcome outcome;
  outcome.setCold(hal::start_reason::kEvicted);
  EXPECT_EQ(reportOf(outcome).state, State::kCold);
  outcome.setWarm();
  outcome.setMapped(100);
  EXPECT_TRUE(outcome.isWarm());
  const hal::StartReport report = reportOf(outcome);
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.mappedBytes, 100u);
}

TEST(StartOutcomeTest, AFailureOfTheStoreIsAWordAndASentence) {
  StartOutcome outcome;
  outcome.setUncached(cache::StoreReason::kNoSpace, "The disk is full.");
  EXPECT_EQ(reportOf(outcome).state, State::kUncached);
  EXPECT_EQ(outcome.reason(), "no-space: The disk is full.");
}

TEST(StartOutcomeTest, AnUncachedStartReportsWhyItPackedAndWhyNothingIsKept) {
  StartOutcome outcome;
  outcome.setCold(hal::start_reason::kFirstOfModel);
  outcome.setColdButUncached({cache::StoreReason::kReadOnly, "The folder is read-only."});
  EXPECT_EQ(reportOf(outcome).state, State::kUncached);
  EXPECT_EQ(outcome.reason(), "first start of this model; read-only: The folder is read-only.");
}

TEST(StartOutcomeTest, RepairsAddUpAndLeaveTheStateAsItWas) {
  StartOutcome outcome;
  outcome.setWarm();
  outcome.addRepaired(10);
  outcome.addRepaired(5);
  const hal::StartReport report = reportOf(outcome);
  EXPECT_EQ(report.state, State::kWarm);
  EXPECT_EQ(report.reason, hal::start_reason::kSegmentCorrupt);
  EXPECT_EQ(report.repairedBytes, 15u);
}

}  // namespace
}  // namespace hearth::cpu
