// SPDX-License-Identifier: Apache-2.0
#include "llm_server/scheduler.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace hearth::llm_server {
namespace {

using namespace std::chrono_literals;

// What tasks did in which order, by a clock that only they move.
struct Course {
  std::string steps;
  Scheduler::Clock::time_point now;
  size_t room = 8;  // for tasks at a time
  size_t left = 0;  // tasks that have not ended
  Scheduler* scheduler = nullptr;
};

class CourseTask : public Task {
 public:
  CourseTask(Course* course, char name, int steps, std::chrono::milliseconds stepTime)
      : course_(*course), name_(name), steps_(steps), stepTime_(stepTime) {
    ++course_.left;
  }
  ~CourseTask() override {
    if (hasStarted_) ++course_.room;
    if (--course_.left == 0) course_.scheduler->stop();
  }

  bool isWanted() override { return steps_ > 0; }
  Start start() override {
    if (course_.room == 0) return Start::kMustWait;
    --course_.room;
    hasStarted_ = true;
    return Start::kStarted;
  }
  bool step() override {
    course_.steps += name_;
    course_.now += stepTime_;
    return --steps_ > 0;
  }

 private:
  Course& course_;
  const char name_;
  int steps_;
  const std::chrono::milliseconds stepTime_;
  bool hasStarted_ = false;
};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() { course_.scheduler = &scheduler_; }
  void add(char name, int steps, std::chrono::milliseconds stepTime) {
    scheduler_.add(std::make_unique<CourseTask>(&course_, name, steps, stepTime));
  }

  Course course_;
  Scheduler scheduler_{[this] {
    return course_.now;
  }};
};

TEST_F(SchedulerTest, TasksTakeTurns) {
  add('a', 3, 10ms);
  add('b', 3, 10ms);
  scheduler_.run();
  EXPECT_EQ(course_.steps, "ababab");
}

TEST_F(SchedulerTest, LongStepsDoNotHoldUpShortOnes) {
  add('P', 3, 40ms);  // the runs of a long prompt
  add('t', 10, 10ms);
  scheduler_.run();
  EXPECT_EQ(course_.steps, "PttttPttttPtt");
}

TEST_F(SchedulerTest, TasksStartInTheirOrderWhenThereIsRoom) {
  course_.room = 2;
  add('a', 2, 10ms);
  add('b', 1, 10ms);
  add('c', 1, 10ms);
  add('d', 1, 10ms);
  scheduler_.run();
  EXPECT_EQ(course_.steps, "abacd");
}

TEST_F(SchedulerTest, WhatNobodyWantsEnds) {
  course_.room = 1;
  add('a', 2, 10ms);
  add('x', 0, 10ms);
  add('b', 1, 10ms);
  scheduler_.run();
  EXPECT_EQ(course_.steps, "aab");
}

TEST_F(SchedulerTest, StoppedItDestroysWhatIsLeft) {
  add('a', 1'000'000'000, 10ms);
  add('b', 1'000'000'000, 10ms);
  std::thread running([&] { scheduler_.run(); });
  scheduler_.stop();
  running.join();
  EXPECT_EQ(course_.left, 0u);
}

}  // namespace
}  // namespace hearth::llm_server
