// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace hearth::base {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  // As a process that starts with this value.
  void startWith(const char* value) {
    if (value)
      setenv("HEARTH_LOG", value, 1);
    else
      unsetenv("HEARTH_LOG");
    internal::logThreshold = -1;
  }
  void TearDown() override { startWith(nullptr); }
};

TEST_F(LogTest, WarningsAreTheStandardThreshold) {
  startWith(nullptr);
  testing::internal::CaptureStderr();
  logInfo("quiet {}", 1);
  logWarn("loud {}", 2);
  logError("louder {}", 3);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, HasSubstr("warning: loud 2\n"));
  EXPECT_THAT(text, HasSubstr("error: louder 3\n"));
}

TEST_F(LogTest, TheVariableSetsTheThreshold) {
  startWith("trace");
  EXPECT_TRUE(logEnabled(LogLevel::kTrace));
  startWith("error");
  EXPECT_FALSE(logEnabled(LogLevel::kWarn));
  EXPECT_TRUE(logEnabled(LogLevel::kError));
  startWith("off");
  EXPECT_FALSE(logEnabled(LogLevel::kError));
}

TEST_F(LogTest, AWrongValueIsReportedOnceAndMeansTheStandard) {
  startWith("loud");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(logEnabled(LogLevel::kInfo));
  EXPECT_TRUE(logEnabled(LogLevel::kWarn));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("HEARTH_LOG is \"loud\""));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(LogTest, BracesInAnArgumentStayAsTheyAre) {
  testing::internal::CaptureStderr();
  logWarn("{}", "{0} {nonsense");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("{0} {nonsense\n"));
}

TEST_F(LogTest, LinesOfSeveralThreadsDoNotMix) {
  setLogLevel(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int n = 0; n < 50; ++n) logInfo("begin{}end", std::string(200, '-'));
      });
  }
  const std::string text = testing::internal::GetCapturedStderr();
  size_t whole = 0;
  const std::string line = "begin" + std::string(200, '-') + "end\n";
  for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++whole;
  EXPECT_EQ(whole, 200u);
}

}  // namespace
}  // namespace hearth::base
