// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/log_sink.h"

namespace hearth::base {
namespace {

using testing::HasSubstr;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  // Resets the log as in a process that starts with this value.
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

// Records the lines that a sink receives.
struct Lines {
  LogSink sink() {
    return [this](LogLevel level, const char* message) {
      texts.emplace_back(message);
      levels.push_back(level);
    };
  }
  std::vector<std::string> texts;
  std::vector<LogLevel> levels;
};

TEST_F(LogTest, ASinkTakesTheLinesOfAllThreadsUntilItIsRemoved) {
  startWith("info");
  Lines first;
  Lines second;
  testing::internal::CaptureStderr();
  setLogSink(first.sink());
  logInfo("one {}", 1);
  logDebug("below the threshold");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int n = 0; n < 50; ++n) logWarn("of a thread");
      });
  }
  EXPECT_EQ(first.texts.size(), 201u);
  EXPECT_EQ(first.texts[0], "one 1");
  EXPECT_EQ(first.levels[0], LogLevel::kInfo);
  EXPECT_EQ(first.levels[1], LogLevel::kWarn);
  setLogSink(second.sink());
  logInfo("two");
  EXPECT_EQ(first.texts.size(), 201u);
  EXPECT_EQ(second.texts, std::vector<std::string>{"two"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  setLogSink(nullptr);
  logInfo("three");
  EXPECT_EQ(second.texts.size(), 1u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("three"));
}

TEST_F(LogTest, ASinkMayLogAndReplaceItself) {
  startWith("info");
  int calls = 0;
  setLogSink([&](LogLevel, const char*) {
    ++calls;
    logInfo("from inside");
    setLogSink(nullptr);
  });
  testing::internal::CaptureStderr();
  logInfo("first");
  logInfo("second");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(text, HasSubstr("from inside"));
  EXPECT_THAT(text, HasSubstr("second"));
  EXPECT_THAT(text, Not(HasSubstr("first")));
}

// A child process has only the thread that forked, whatever the others were doing.
TEST_F(LogTest, AChildLogsAlthoughAnotherThreadIsInTheSink) {
  startWith("info");
  std::atomic<bool> isEntered = false;
  std::atomic<bool> mayLeave = false;
  const pid_t parent = ::getpid();
  setLogSink([&](LogLevel, const char*) {
    if (::getpid() != parent) ::_exit(0);
    isEntered = true;
    while (!mayLeave) std::this_thread::yield();
  });
  std::jthread thread([] { logInfo("stays inside"); });
  while (!isEntered) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    logInfo("of the child");
    ::_exit(1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  mayLeave = true;
  thread.join();
  setLogSink(nullptr);
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
