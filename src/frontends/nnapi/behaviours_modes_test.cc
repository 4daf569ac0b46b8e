// SPDX-License-Identifier: Apache-2.0
// Behaviours 34 to 41 of NNAPI: bursts, fences, timing, deadlines, failures.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "android/NeuralNetworksExtensions.h"
#include "base/descriptor.h"
#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class ModeBehaviour : public FakeDeviceTest {
 protected:
  // For one listed device, which allows deadlines and timing.
  static ndk::Compilation compileForOne(const ndk::Model& model) {
    return compileFor(model, {ndk::devices().back()});
  }

  const std::vector<float> a_ = {1, 2};
  std::vector<float> sum_ = {0, 0};
};

TEST_F(ModeBehaviour, B34_Bursts) {
  const ndk::Compilation compilation = compileForAll(addModel({1000}));
  const ndk::Compilation other = compileForAll(addModel({1000}));
  ndk::BurstHandle burst;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksBurst_create(compilation.get(), Out(burst)));
  std::vector<float> ones(1000, 1);
  ndk::Execution foreign(other);
  std::vector<float> sum(1000);
  foreign.input(0, ones).input(1, ones).output(0, sum);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_burstCompute(foreign.get(), burst.get()));

  std::atomic<int> succeeded = 0;
  std::atomic<int> refused = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> result(1000);
        ndk::Execution execution(compilation);
        execution.input(0, ones).input(1, ones).output(0, result);
        const int code = ANeuralNetworksExecution_burstCompute(execution.get(), burst.get());
        succeeded += code == ANEURALNETWORKS_NO_ERROR;
        refused += code == ANEURALNETWORKS_BAD_STATE;
        wrong += code == ANEURALNETWORKS_NO_ERROR && result.back() != 2;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(succeeded, 0);
  EXPECT_EQ(succeeded + refused, 800);
  EXPECT_EQ(wrong, 0);
}

TEST_F(ModeBehaviour, B35_FencedExecutionsFollowTheirDependencies) {
  const ndk::Compilation compilation = compileForAll(addModel());
  // Each execution doubles the result of the one before.
  std::vector<std::vector<float>> values(21, std::vector<float>(2, 0));
  values[0] = {1, 3};
  std::vector<ndk::Event> events;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    ndk::Execution execution(compilation);
    execution.input(0, values[i]).input(1, values[i]).output(0, values[i + 1]);
    std::vector<const ANeuralNetworksEvent*> dependencies;
    if (!events.empty()) dependencies = {events.back().get(), events.front().get()};
    events.push_back(execution.startAfter(dependencies));
  }
  events.back().wait();
  EXPECT_THAT(values.back(), testing::ElementsAre(1 << 20, 3 << 20));

  ndk::Execution execution(compilation);
  execution.input(0, a_).input(1, a_).output(0, sum_);
  ndk::EventHandle event;
  const ANeuralNetworksEvent* const none[] = {nullptr};
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_startComputeWithDependencies(
                                   execution.get(), none, 1, 0, Out(event)));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_startComputeWithDependencies(
                            execution.get(), nullptr, 0, 1000, Out(event)));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_startComputeWithDependencies(
                            execution.get(), nullptr, 0, 0, Out(event)));

  const ndk::Compilation onOne = compileForOne(addModel());
  ndk::Execution limited(onOne);
  std::vector<float> second(2);
  limited.input(0, a_).input(1, a_).output(0, second);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_startComputeWithDependencies(
                            limited.get(), nullptr, 0, UINT64_MAX, Out(event)));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
  EXPECT_THAT(second, testing::ElementsAre(2, 4));

  const ndk::Compilation dynamic = compileForAll(addModel({0}));
  ndk::Execution unknown(dynamic);
  setBothInputs(unknown, a_);
  unknown.output(0, sum_);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_startComputeWithDependencies(
                            unknown.get(), nullptr, 0, 0, Out(event)));
}

TEST_F(ModeBehaviour, B35_ADependencyThatFailsFailsWhatFollows) {
  auto device = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fails", .computeError = ErrorCode::kOpFailed});
  setDevicesForTest({device});
  const ndk::Compilation compilation = compileForOne(addModel());
  ndk::Execution first(compilation);
  const ndk::Event failing = first.input(0, a_).input(1, a_).output(0, sum_).startAfter({});
  EXPECT_CODE(OP_FAILED, ANeuralNetworksEvent_wait(failing.get()));
  device->options.computeError.reset();
  ndk::Execution second(compilation);
  std::vector<float> untouched = {7, 7};
  const ndk::Event event =
      second.input(0, a_).input(1, a_).output(0, untouched).startAfter({failing.get()});
  EXPECT_CODE(OP_FAILED, ANeuralNetworksEvent_wait(event.get()));
  EXPECT_THAT(untouched, testing::ElementsAre(7, 7));
}

TEST_F(ModeBehaviour, B35_DependenciesWithoutAFence) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::Execution first(compilation);
  const ndk::Event started = first.input(0, a_).input(1, a_).output(0, sum_).start();
  ndk::Execution second(compilation);
  std::vector<float> twice(2);
  const ndk::Event event =
      second.input(0, sum_).input(1, sum_).output(0, twice).startAfter({started.get()});
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
  EXPECT_THAT(twice, testing::ElementsAre(4, 8));
}

bool isReadable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

TEST_F(ModeBehaviour, B36_SyncFences) {
  ndk::EventHandle event;
  for (const int fd : {-1, 0, 1'000'000})
    EXPECT_CODE(BAD_DATA, ANeuralNetworksEvent_createFromSyncFenceFd(fd, Out(event)));

  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::Execution async(compilation);
  std::vector<float> other(2);
  const ndk::Event withoutFence = async.input(0, a_).input(1, a_).output(0, other).start();
  int fd = 5;
  EXPECT_CODE(BAD_DATA, ANeuralNetworksEvent_getSyncFenceFd(withoutFence.get(), &fd));
  EXPECT_EQ(fd, -1);

  withoutFence.wait();
  EXPECT_CODE(BAD_DATA, ANeuralNetworksEvent_getSyncFenceFd(withoutFence.get(), &fd));
  EXPECT_EQ(fd, -1);
  fd = 5;
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksEvent_getSyncFenceFd(nullptr, &fd));
  EXPECT_EQ(fd, -1);

  // The execution waits for another program's fence.
  const base::Descriptor outside(::eventfd(0, EFD_CLOEXEC));
  ASSERT_CODE(NO_ERROR, ANeuralNetworksEvent_createFromSyncFenceFd(outside.get(), Out(event)));
  ndk::Execution execution(compilation);
  const ndk::Event done =
      execution.input(0, a_).input(1, a_).output(0, sum_).startAfter({event.get()});
  ASSERT_CODE(NO_ERROR, ANeuralNetworksEvent_getSyncFenceFd(done.get(), &fd));
  const base::Descriptor fence(fd);
  EXPECT_FALSE(isReadable(fence.get()));
  ASSERT_EQ(::eventfd_write(outside.get(), 1), 0);
  done.wait();
  EXPECT_TRUE(isReadable(fence.get()));
  EXPECT_THAT(sum_, testing::ElementsAre(2, 4));

  // The execution's own fence can be imported as an event, and the fence of a completed event is
  // readable at once.
  ndk::EventHandle imported;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksEvent_createFromSyncFenceFd(fence.get(), Out(imported)));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(imported.get()));
  ASSERT_CODE(NO_ERROR, ANeuralNetworksEvent_getSyncFenceFd(imported.get(), &fd));
  const base::Descriptor late(fd);
  EXPECT_TRUE(isReadable(late.get()));
}

// An execution that waits for its dependencies can be neither queried nor changed.
TEST_F(ModeBehaviour, B24_B29_B38_InFlight) {
  for (const bool isReusable : {false, true}) {
    SCOPED_TRACE(isReusable);
    const base::Descriptor outside(::eventfd(0, EFD_CLOEXEC));
    ndk::EventHandle gate;
    ASSERT_CODE(NO_ERROR, ANeuralNetworksEvent_createFromSyncFenceFd(outside.get(), Out(gate)));
    const ndk::Compilation compilation = compileForOne(addModel());
    ndk::Execution execution(compilation);
    ANeuralNetworksExecution* const e = execution.get();
    if (isReusable) execution.reusable();
    ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setMeasureTiming(e, true));
    execution.input(0, a_).input(1, a_).output(0, sum_);
    const ndk::Event event = execution.startAfter({gate.get()});

    uint32_t answer[4] = {};
    uint64_t time = 0;
    ndk::EventHandle none;
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getOutputOperandRank(e, 0, answer));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getOutputOperandDimensions(e, 0, answer));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getDuration(e, 0, &time));
    EXPECT_EQ(time, UINT64_MAX);
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setInput(e, 0, nullptr, a_.data(), 8));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setOutput(e, 0, nullptr, sum_.data(), 8));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setReusable(e, !isReusable));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setMeasureTiming(e, false));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setTimeout(e, 0));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setLoopTimeout(e, 1));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_enableInputAndOutputPadding(e, true));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_addExtensionAttribute(e, "x", 0, answer, 4));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_compute(e));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_startCompute(e, Out(none)));
    EXPECT_CODE(BAD_STATE,
                ANeuralNetworksExecution_startComputeWithDependencies(e, nullptr, 0, 0, Out(none)));
    EXPECT_EQ(none, nullptr);
    ASSERT_EQ(::eventfd_write(outside.get(), 1), 0);
    EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
    EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_getOutputOperandRank(e, 0, answer));
    // Fenced executions are measured like others.
    for (const int32_t code : {0, 1, 2, 3})
      EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_getDuration(e, code, &time));
    sum_ = {0, 0};
  }
}

TEST_F(ModeBehaviour, B37_B38_Timing) {
  const ndk::Compilation everywhere = compileForAll(addModel());
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksExecution_setMeasureTiming(ndk::Execution(everywhere).get(), true));
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Model model = addModel();
    ndk::Compilation compilation(model, {device});
    compilation.finish();
    ndk::Execution execution(compilation);
    uint64_t times[4];
    const auto duration = [&](int32_t code, uint64_t* time) {
      return ANeuralNetworksExecution_getDuration(execution.get(), code, time);
    };
    EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setMeasureTiming(execution.get(), true));
    times[0] = 0;
    EXPECT_CODE(BAD_STATE, duration(0, &times[0]));
    EXPECT_EQ(times[0], UINT64_MAX);
    execution.input(0, a_).input(1, a_).output(0, sum_).compute();
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_setMeasureTiming(execution.get(), true));
    for (const int32_t code : {0, 1, 2, 3}) EXPECT_CODE(NO_ERROR, duration(code, &times[code]));
    EXPECT_LE(times[ANEURALNETWORKS_DURATION_ON_HARDWARE],
              times[ANEURALNETWORKS_DURATION_IN_DRIVER]);
    EXPECT_LE(times[ANEURALNETWORKS_FENCED_DURATION_ON_HARDWARE],
              times[ANEURALNETWORKS_DURATION_ON_HARDWARE]);
    EXPECT_LE(times[ANEURALNETWORKS_FENCED_DURATION_IN_DRIVER],
              times[ANEURALNETWORKS_DURATION_IN_DRIVER]);
    for (const int32_t code : {-1, 4}) {
      EXPECT_CODE(BAD_DATA, duration(code, &times[0]));
      EXPECT_EQ(times[0], UINT64_MAX);
    }
    // This execution does not measure.
    ndk::Execution unmeasured(compilation);
    unmeasured.input(0, a_).input(1, a_).output(0, sum_).compute();
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getDuration(unmeasured.get(), 0, &times[0]));
    EXPECT_EQ(times[0], UINT64_MAX);
  }

  setDevicesForTest({std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "fails", .computeError = ErrorCode::kOpFailed})});
  const ndk::Compilation failing = compileForOne(addModel());
  ndk::Execution failed(failing);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setMeasureTiming(failed.get(), true));
  failed.input(0, a_).input(1, a_).output(0, sum_);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(failed.get()));
  uint64_t time = 0;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_getDuration(failed.get(), 0, &time));
  EXPECT_EQ(time, UINT64_MAX);
}

bool isMissedDeadline(int code) {
  return code == ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT ||
         code == ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT;
}

TEST_F(ModeBehaviour, B39_Deadlines) {
  const ndk::Compilation everywhere = compileForAll(addModel());
  EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_setTimeout(ndk::Execution(everywhere).get(), 1));
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Model model = addModel();
    // A deadline of a nanosecond is always missed.
    ndk::Compilation late(model, {device});
    ASSERT_CODE(NO_ERROR, ANeuralNetworksCompilation_setTimeout(late.get(), 1));
    EXPECT_TRUE(isMissedDeadline(ANeuralNetworksCompilation_finish(late.get())));
    EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_finish(late.get()));

    ndk::Compilation compilation(model, {device});
    compilation.finish();
    const std::function<int(ndk::Execution&)> modes[] = {
        [](ndk::Execution& execution) { return ANeuralNetworksExecution_compute(execution.get()); },
        [](ndk::Execution& execution) {
          return ANeuralNetworksEvent_wait(execution.start().get());
        },
        [&](ndk::Execution& execution) {
          ndk::BurstHandle burst;
          ndk::check(ANeuralNetworksBurst_create(compilation.get(), Out(burst)), "Burst_create");
          return ANeuralNetworksExecution_burstCompute(execution.get(), burst.get());
        },
        [](ndk::Execution& execution) {
          ndk::EventHandle event;
          ndk::check(ANeuralNetworksExecution_startComputeWithDependencies(execution.get(), nullptr,
                                                                           0, 1, Out(event)),
                     "startComputeWithDependencies");
          return ANeuralNetworksEvent_wait(event.get());
        }};
    for (const auto& compute : modes) {
      ndk::Execution execution(compilation);
      ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setTimeout(execution.get(), 1));
      sum_ = {7, 7};
      execution.input(0, a_).input(1, a_).output(0, sum_);
      EXPECT_TRUE(isMissedDeadline(compute(execution)));
      EXPECT_THAT(sum_, testing::ElementsAre(7, 7));
    }
    ndk::Execution patient(compilation);
    ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setTimeout(patient.get(), UINT64_MAX));
    patient.input(0, a_).input(1, a_).output(0, sum_).compute();
    EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
  }
}

TEST_F(ModeBehaviour, B40_LoopTimeouts) {
  EXPECT_EQ(ANeuralNetworks_getDefaultLoopTimeout(), 2'000'000'000u);
  EXPECT_EQ(ANeuralNetworks_getMaximumLoopTimeout(), 15'000'000'000u);
  const ndk::Compilation compilation = compileForAll(endlessModel());
  ndk::BurstHandle burst;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksBurst_create(compilation.get(), Out(burst)));
  const std::vector<float> n = {1};
  std::vector<float> end(1);
  const std::function<int(ndk::Execution&)> modes[] = {
      [](ndk::Execution& execution) { return ANeuralNetworksExecution_compute(execution.get()); },
      [](ndk::Execution& execution) { return ANeuralNetworksEvent_wait(execution.start().get()); },
      [&](ndk::Execution& execution) {
        return ANeuralNetworksExecution_burstCompute(execution.get(), burst.get());
      },
      [](ndk::Execution& execution) {
        return ANeuralNetworksEvent_wait(execution.startAfter({}).get());
      }};
  for (const auto& compute : modes) {
    ndk::Execution execution(compilation);
    EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setLoopTimeout(execution.get(), 20'000'000));
    execution.input(0, n).output(0, end);
    EXPECT_TRUE(isMissedDeadline(compute(execution)));
  }
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setLoopTimeout(ndk::Execution(compilation).get(),
                                                                UINT64_MAX));
}

TEST_F(ModeBehaviour, B41_FailuresOfDriversAndTheFallback) {
  struct Mapping {
    ErrorCode error;
    int code;
  };
  auto device =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "fails", .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({device, reference});
  const ndk::Model model = addModel();
  ndk::Compilation listed(model, {ndk::devices()[0]});
  listed.finish();
  const ndk::Compilation everywhere = compileForAll(model);
  for (const Mapping& mapping :
       {Mapping{ErrorCode::kUnavailableDevice, ANEURALNETWORKS_UNAVAILABLE_DEVICE},
        Mapping{ErrorCode::kOpFailed, ANEURALNETWORKS_OP_FAILED},
        Mapping{ErrorCode::kResourceExhaustedTransient,
                ANEURALNETWORKS_RESOURCE_EXHAUSTED_TRANSIENT},
        Mapping{ErrorCode::kOutOfMemory, ANEURALNETWORKS_OP_FAILED},
        Mapping{ErrorCode::kDeadObject, ANEURALNETWORKS_OP_FAILED},
        Mapping{ErrorCode::kUnmappable, ANEURALNETWORKS_OP_FAILED}}) {
    SCOPED_TRACE(mapping.code);
    device->options.computeError = mapping.error;
    ndk::Execution alone(listed);
    alone.input(0, a_).input(1, a_).output(0, sum_);
    EXPECT_EQ(ANeuralNetworksExecution_compute(alone.get()), mapping.code);
    sum_ = {0, 0};
    ndk::Execution(everywhere).input(0, a_).input(1, a_).output(0, sum_).compute();
    EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
  }
  // A missed deadline is not tried again on another device.
  device->options.computeError = ErrorCode::kMissedDeadlineTransient;
  ndk::Execution late(everywhere);
  late.input(0, a_).input(1, a_).output(0, sum_);
  EXPECT_CODE(MISSED_DEADLINE_TRANSIENT, ANeuralNetworksExecution_compute(late.get()));

  // A failure to prepare goes to the reference, too.
  device->options.prepareError = ErrorCode::kOpFailed;
  const int before = reference->preparations;
  sum_ = {0, 0};
  const ndk::Compilation fallback = compileForAll(model);
  ndk::Execution(fallback).input(0, a_).input(1, a_).output(0, sum_).compute();
  EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
  EXPECT_EQ(reference->preparations, before + 1);
  ndk::Compilation noFallback(model, {ndk::devices()[0]});
  EXPECT_CODE(OP_FAILED, ANeuralNetworksCompilation_finish(noFallback.get()));
}

}  // namespace
}  // namespace hearth::nnapi
