// SPDX-License-Identifier: Apache-2.0
// Behaviours 35 and 36 of NNAPI on a device that waits for fences itself.
#include <poll.h>
#include <sys/eventfd.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "frontends/nnapi/testing/memory_behaviour.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

// An event that completes when it is opened.
class Gate {
 public:
  Gate() : fence_(::eventfd(0, EFD_CLOEXEC)) {
    ndk::check(ANeuralNetworksEvent_createFromSyncFenceFd(fence_.get(), Out(event_)),
               "createFromSyncFenceFd");
  }
  void open() { ASSERT_EQ(::eventfd_write(fence_.get(), 1), 0); }
  const ANeuralNetworksEvent* get() const { return event_.get(); }

 private:
  base::Descriptor fence_;
  ndk::EventHandle event_;
};

class FenceBehaviour : public MemoryBehaviour {
 protected:
  void SetUp() override {
    MemoryBehaviour::SetUp();
    setDevicesForTest({device_});
  }
  void TearDown() override {
    // Events wait when they are freed.
    gate_.open();
    events_.clear();
    MemoryBehaviour::TearDown();
  }

  // Starts `to` = `from` + {1, 2} after these events.
  const ndk::Event& add(const ndk::Compilation& compilation, const ndk::MemoryHandle& from,
                        const ndk::MemoryHandle& to,
                        const std::vector<const ANeuralNetworksEvent*>& dependencies) {
    ndk::Execution execution(compilation);
    execution.input(1, a_);
    ndk::check(setInput(execution, 0, from, 0, 0), "setInputFromMemory");
    ndk::check(setOutput(execution, 0, to, 0, 0), "setOutputFromMemory");
    events_.push_back(execution.startAfter(dependencies));
    return events_.back();
  }
  int resultOf(size_t event) { return ANeuralNetworksEvent_wait(events_[event].get()); }

  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fenced", .allocates = true, .hasFences = true});
  Gate gate_;
  std::vector<ndk::Event> events_;
};

bool isReadable(const ndk::Event& event) {
  int fd = -1;
  ndk::check(ANeuralNetworksEvent_getSyncFenceFd(event.get(), &fd), "getSyncFenceFd");
  const base::Descriptor fence(fd);
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

TEST_F(FenceBehaviour, B35_TheDeviceHasAllExecutionsBeforeTheFirstOneBegins) {
  const ndk::Compilation compilation = compileForOne(addModel());
  const ndk::MemoryHandle one = deviceMemory(compilation);
  const ndk::MemoryHandle other = deviceMemory(compilation);
  ASSERT_CODE(NO_ERROR, copyIn({10, 20}, one));
  add(compilation, one, other, {gate_.get()});
  // The memory has no value yet.
  add(compilation, other, one, {events_[0].get()});
  add(compilation, one, other, {events_[0].get(), events_[1].get()});
  EXPECT_EQ(device_->fencedStarts, 3);
  EXPECT_EQ(device_->computations, 0);
  EXPECT_FALSE(isReadable(events_[2]));
  gate_.open();
  for (size_t i = 0; i < events_.size(); ++i) EXPECT_CODE(NO_ERROR, resultOf(i));
  EXPECT_EQ(device_->computations, 3);
  EXPECT_TRUE(isReadable(events_[2]));
  EXPECT_THAT(copyOut(other, 2), testing::ElementsAre(13, 26));
  EXPECT_THAT(copyOut(one, 2), testing::ElementsAre(12, 24));
}

TEST_F(FenceBehaviour, B35_ArgumentsOfTheClientAreReadAfterTheDependencies) {
  const ndk::Compilation compilation = compileForOne(addModel());
  std::vector<float> value = {0, 0};
  std::vector<float> sum(2);
  ndk::Execution execution(compilation);
  execution.input(0, value).input(1, a_).output(0, sum);
  events_.push_back(execution.startAfter({gate_.get()}));
  value = {5, 6};
  gate_.open();
  EXPECT_CODE(NO_ERROR, resultOf(0));
  EXPECT_THAT(sum, testing::ElementsAre(6, 8));
  EXPECT_EQ(device_->fencedStarts, 1);
}

TEST_F(FenceBehaviour, B35_AReusableExecutionStartsAgainAndAgain) {
  const ndk::Compilation compilation = compileForOne(addModel());
  std::vector<float> sum = {1, 1};
  ndk::Execution execution(compilation);
  execution.reusable();
  execution.input(0, sum).input(1, a_).output(0, sum);
  for (int round = 1; round <= 3; ++round) {
    execution.startAfter({}).wait();
    EXPECT_EQ(device_->fencedStarts, round);
  }
  EXPECT_THAT(sum, testing::ElementsAre(4, 7));
  // Without fences the device is asked as ever.
  execution.compute();
  EXPECT_THAT(sum, testing::ElementsAre(5, 9));
  EXPECT_EQ(device_->fencedStarts, 3);
}

TEST_F(FenceBehaviour, B35_ADependencyThatFailsFailsWhatTheDeviceHasAlready) {
  const ndk::Compilation compilation = compileForOne(addModel());
  const ndk::MemoryHandle one = deviceMemory(compilation);
  const ndk::MemoryHandle other = deviceMemory(compilation);
  ASSERT_CODE(NO_ERROR, copyIn(a_, one));
  device_->options.computeError = ErrorCode::kOpFailed;
  add(compilation, one, other, {gate_.get()});
  add(compilation, other, one, {events_[0].get()});
  EXPECT_EQ(device_->fencedStarts, 2);
  gate_.open();
  EXPECT_CODE(OP_FAILED, resultOf(0));
  EXPECT_CODE(OP_FAILED, resultOf(1));
  device_->options.computeError.reset();
  // Both outputs have lost their values.
  const base::Descriptor file = fileOf(a_);
  const ndk::MemoryHandle target = memoryOf(file, 8);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(one.get(), target.get()));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(other.get(), target.get()));
  // The device is not asked for what follows a failure.
  const int before = device_->fencedStarts;
  ASSERT_CODE(NO_ERROR, copyIn(a_, one));
  add(compilation, one, other, {events_[0].get()});
  EXPECT_CODE(OP_FAILED, resultOf(2));
  EXPECT_EQ(device_->fencedStarts, before);
}

TEST_F(FenceBehaviour, B48_AnInputThatNobodyWritesFails) {
  const ndk::Compilation compilation = compileForOne(addModel());
  const ndk::MemoryHandle empty = deviceMemory(compilation);
  const ndk::MemoryHandle other = deviceMemory(compilation);
  add(compilation, empty, other, {gate_.get()});
  gate_.open();
  EXPECT_CODE(OP_FAILED, resultOf(0));
  // The same where nothing is in flight.
  add(compilation, empty, other, {});
  EXPECT_CODE(OP_FAILED, resultOf(1));
}

TEST_F(FenceBehaviour, B35_ADurationBeginsWithTheEndOfTheDependencies) {
  const ndk::Compilation compilation = compileForOne(addModel());
  std::vector<float> sum(2);
  const auto start = [&](const std::vector<const ANeuralNetworksEvent*>& dependencies,
                         uint64_t duration) {
    ndk::Execution execution(compilation);
    execution.input(0, a_).input(1, a_).output(0, sum);
    ndk::EventHandle event;
    ndk::check(ANeuralNetworksExecution_startComputeWithDependencies(
                   execution.get(), dependencies.data(), static_cast<uint32_t>(dependencies.size()),
                   duration, Out(event)),
               "startComputeWithDependencies");
    return event;
  };
  constexpr uint64_t kHour = 3'600'000'000'000;
  // A thread waits, as the device would not know when the time begins.
  const ndk::EventHandle later = start({gate_.get()}, kHour);
  EXPECT_EQ(device_->fencedStarts, 0);
  gate_.open();
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(later.get()));
  const ndk::EventHandle atOnce = start({gate_.get()}, kHour);
  EXPECT_EQ(device_->fencedStarts, 1);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(atOnce.get()));
  EXPECT_THAT(sum, testing::ElementsAre(2, 4));
}

TEST_F(FenceBehaviour, B38_AnExecutionIsInFlightUntilItsEventIsComplete) {
  const ndk::Compilation compilation = compileForOne(addModel());
  ndk::Execution execution(compilation);
  std::vector<float> sum(2);
  execution.input(0, a_).input(1, a_).output(0, sum);
  events_.push_back(execution.startAfter({gate_.get()}));
  EXPECT_EQ(device_->fencedStarts, 1);
  uint32_t rank = 0;
  ndk::EventHandle none;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getOutputOperandRank(execution.get(), 0, &rank));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_startComputeWithDependencies(
                             execution.get(), nullptr, 0, 0, Out(none)));
  gate_.open();
  EXPECT_CODE(NO_ERROR, resultOf(0));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_getOutputOperandRank(execution.get(), 0, &rank));
  EXPECT_EQ(rank, 1u);
}

TEST_F(FenceBehaviour, B41_WhatADeviceAnswersIsCheckedAsEver) {
  const ndk::Compilation compilation = compileForOne(addModel());
  std::vector<float> sum(2);
  device_->options.changeResult = [](hal::ExecutionResult* result) {
    result->outputShapes = {{{7}, true}};
  };
  ndk::Execution execution(compilation);
  execution.input(0, a_).input(1, a_).output(0, sum);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksEvent_wait(execution.startAfter({}).get()));
  EXPECT_EQ(device_->fencedStarts, 1);
}

// Where the client names no device, another one computes what fails: the fence of the first one
// would tell the devices that wait for it too early.
TEST_F(FenceBehaviour, B35_WhatMayBeComputedAgainElsewhereHasNoFenceOfTheDevice) {
  device_->options.performance = {0.5f, 0.5f};
  setDevicesForTest(
      {device_, std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"})});
  const ndk::Compilation compilation = compileForAll(addModel());
  std::vector<float> sum(2);
  ndk::Execution execution(compilation);
  execution.input(0, a_).input(1, a_).output(0, sum);
  execution.startAfter({}).wait();
  EXPECT_THAT(sum, testing::ElementsAre(2, 4));
  EXPECT_EQ(device_->computations, 1);
  EXPECT_EQ(device_->fencedStarts, 0);
}

}  // namespace
}  // namespace hearth::nnapi
