// SPDX-License-Identifier: Apache-2.0
// A driver that hangs in a host for all clients: what clients wait for, and what others notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "hal/longest_step.h"
#include "ipc/encoding.h"
#include "ipc/hosted_device.h"
#include "ipc/patience.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/listening_host.h"
#include "ipc/testing/local_host.h"
#include "ipc/testing/patience_limit.h"
#include "ipc/testing/session_calls.h"

namespace hearth::ipc {
namespace {

using hal::cts::addModel;
using hal::cts::argumentFor;
using hal::cts::poolArgument;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kMillisecond = 1'000'000;

class HangingDriverTest : public testing::Test {
 protected:
  HangingDriverTest() {
    auto device = HostedDevice::create("fake", host_.opener());
    EXPECT_TRUE(device) << device.error().toString();
    if (device) device_ = *device;
  }
  ~HangingDriverTest() override { fake_->letGo(); }

  Result<std::shared_ptr<hal::PreparedModel>> prepare(const std::string& longestStep = {}) {
    hal::PrepareOptions options;
    if (!longestStep.empty()) options.driverOptions[hal::kLongestStepOption] = longestStep;
    return device_->prepareModel(std::make_shared<const graph::Model>(addModel({2})), options, {});
  }
  static base::Deadline soon() { return base::Deadline::after(1000 * kMillisecond); }
  hal::Request request() { return {{argumentFor(a_), argumentFor(b_)}, {argumentFor(out_)}}; }
  void expectSum(hal::Execution& execution) {
    const hal::ExecutionResult result = execution.compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out_, ElementsAre(11, 22));
    std::fill(out_.begin(), out_.end(), 0.0f);
  }
  void expectGivenUp(const hal::ExecutionResult& result) {
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
    EXPECT_THAT(out_, Each(0.0f));
  }

  const PatienceLimit lateness_{internal::lateness, 100 * kMillisecond};
  const std::shared_ptr<FakeDevice> fake_ = std::make_shared<FakeDevice>();
  const ListeningHost host_{fake_, {}};
  std::shared_ptr<HostedDevice> device_;
  std::vector<float> a_ = {1, 2};
  std::vector<float> b_ = {10, 20};
  std::vector<float> out_ = std::vector<float>(2);
};

TEST_F(HangingDriverTest, AComputationIsGivenUpSomeTimeAfterItsDeadline) {
  const auto prepared = prepare();
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  // The first one goes as a message, the others through a mailbox.
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum(**execution);
    fake_->hold();
    expectGivenUp((*execution)->compute(soon()));
    fake_->letGo();
    expectSum(**execution);
  }
  EXPECT_EQ(device_->state().restarts, 0u);
  // A long computation without a deadline is waited for.
  fake_->hold();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    fake_->letGo();
  });
  expectSum(**execution);
  later.join();
}

// Its host answers the pulse.
TEST_F(HangingDriverTest, AComputationWithoutProgressIsGivenUpSoonerThanOneThatGoesOn) {
  const PatienceLimit lateness(internal::lateness, 3'600'000 * kMillisecond);
  const PatienceLimit standstill(internal::standstill, 200 * kMillisecond);
  const auto prepared = prepare();
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum(**execution);
    fake_->hold();
    const hal::ExecutionResult hung =
        (*execution)->compute(base::Deadline::after(50 * kMillisecond));
    expectGivenUp(hung);
    EXPECT_THAT(hung.status.error().toString(), HasSubstr("its driver hangs"));
    fake_->letGo();
    expectSum(**execution);
    // This one is waited for, though what it gives comes too late.
    fake_->tellsProgress = true;
    fake_->ignoresDeadlines = true;
    fake_->hold();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      fake_->letGo();
    });
    const hal::ExecutionResult late =
        (*execution)->compute(base::Deadline::after(50 * kMillisecond));
    later.join();
    expectGivenUp(late);
    EXPECT_THAT(late.status.error().toString(), HasSubstr("has ended long after its deadline"));
    fake_->tellsProgress = false;
    fake_->ignoresDeadlines = false;
  }
}

// Its host answers the pulse, too.
TEST_F(HangingDriverTest, AComputationWithoutADeadlineIsGivenUpAfterTheLongestStepOfItsModel) {
  const PatienceLimit standstill(internal::standstill, 100 * kMillisecond);
  const auto prepared = prepare(std::to_string(200 * kMillisecond));
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum(**execution);
    // One that goes on may take longer.
    fake_->tellsProgress = true;
    fake_->hold();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      fake_->letGo();
    });
    expectSum(**execution);
    later.join();
    fake_->tellsProgress = false;
    fake_->hold();
    const hal::ExecutionResult hung = (*execution)->compute({});
    ASSERT_FALSE(hung.status);
    EXPECT_EQ(hung.status.error().code(), ErrorCode::kDeadObject);
    EXPECT_THAT(hung.status.error().toString(), HasSubstr("has begun no step"));
    EXPECT_THAT(out_, Each(0.0f));
    fake_->letGo();
    expectSum(**execution);
  }
}

TEST_F(HangingDriverTest, AStepMayTakeAsLongAsTheModelSaysBehindADeadline) {
  const PatienceLimit lateness(internal::lateness, 100 * kMillisecond);
  const PatienceLimit standstill(internal::standstill, 100 * kMillisecond);
  const auto prepared = prepare(std::to_string(3'600'000 * kMillisecond));
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  fake_->ignoresDeadlines = true;
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum(**execution);
    fake_->hold();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      fake_->letGo();
    });
    const hal::ExecutionResult late =
        (*execution)->compute(base::Deadline::after(50 * kMillisecond));
    later.join();
    expectGivenUp(late);
    EXPECT_THAT(late.status.error().toString(), HasSubstr("has ended long after its deadline"));
  }
}

TEST_F(HangingDriverTest, ALongestStepIsANumberOfNanoseconds) {
  for (const char* const wrong : {"-1", "5s", "9223372036854775808", " 5"}) {
    const auto refused = prepare(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code(), ErrorCode::kBadData);
    EXPECT_THAT(refused.error().toString(), HasSubstr(wrong));
  }
  // The longest of all reaches the calculation of deadlines, too.
  const auto prepared = prepare("9223372036854775807");
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  expectSum(**execution);
}

// The client may use the memory for something else by then.
TEST_F(HangingDriverTest, WhatEndsTooLateIsNotWritten) {
  const auto prepared = prepare();
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto pool = memory::Pool::anonymous(2 * sizeof(float));
  ASSERT_TRUE(pool) << pool.error().toString();
  const auto* const written = reinterpret_cast<const float*>((*pool)->data());
  auto execution = (*prepared)->createExecution(
      {{argumentFor(a_), argumentFor(b_)}, {poolArgument(*pool, 0, 2 * sizeof(float))}});
  ASSERT_TRUE(execution) << execution.error().toString();
  fake_->ignoresDeadlines = true;
  fake_->hold();
  expectGivenUp((*execution)->compute(soon()));
  execution->reset();
  fake_->letGo();
  EXPECT_TRUE(comesTrue([&] { return fake_->executions == 0; }));
  EXPECT_EQ(written[0], 0.0f);
  EXPECT_EQ(written[1], 0.0f);
}

TEST_F(HangingDriverTest, APreparationIsGivenUpSomeTimeAfterItsDeadline) {
  const auto prepared = prepare();
  ASSERT_TRUE(prepared) << prepared.error().toString();
  fake_->holdPreparations();
  // Another model, since this one is there.
  const auto late = device_->prepareModel(std::make_shared<const graph::Model>(addModel({2, 5})),
                                          {.deadline = soon()}, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_EQ(fake_->prepared, 1);
  fake_->letGo();
  EXPECT_TRUE(comesTrue([&] { return fake_->prepared == 2; }));
  // The model that nobody waits for any more is freed when the client reads that it is there.
  EXPECT_TRUE(comesTrue([&] {
    static_cast<void>(device_->state());
    return fake_->prepared == 1;
  }));
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  expectSum(**execution);
}

// A model of a driver that does not end to free it.
class HangingModel final : public hal::PreparedModel {
 public:
  explicit HangingModel(std::atomic<bool>* mayEnd) : mayEnd_(mayEnd) {}
  ~HangingModel() override { mayEnd_->wait(false); }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request /*request*/) override {
    return fail(ErrorCode::kUnsupported, "It computes nothing.");
  }
  hal::StartReport startReport() const override { return {}; }

 private:
  std::atomic<bool>* const mayEnd_;
};
class HangingDevice final : public FakeDevice {
 public:
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override {
    if (model->main().operands[0].dimensions[0] != 7)
      return FakeDevice::prepareModel(std::move(model), options, std::move(cache));
    return std::make_shared<HangingModel>(&mayEnd);
  }

  std::atomic<bool> mayEnd = false;
};

TEST(HangingDriver, ClientsThatGoDisturbNobodyThoughTheDriverHangs) {
  const auto hanging = std::make_shared<HangingDevice>();
  {
    std::atomic<int> beats = 0;
    const ListeningHost host(hanging, {}, {[&] { ++beats; }, std::chrono::milliseconds(1)});
    // Prepares a model on a connection of its own, and goes without releasing it.
    const auto prepareAndGo = [&](uint32_t size) {
      auto socket = host.opener()();
      ASSERT_TRUE(socket) << socket.error().toString();
      const auto session = Session::open(std::move(*socket));
      ASSERT_TRUE(session) << session.error().toString();
      Outgoing outgoing;
      auto request = outgoing.request.initPrepare();
      ASSERT_TRUE(writeModel(addModel({size}), request.initModel(), &outgoing.attachments));
      request.setPreference(1);
      request.setPriority(100);
      EXPECT_NE(objectOf((*session)->call(outgoing)), 0u);
    };
    for (int i = 0; i < 3; ++i) prepareAndGo(7);
    for (int i = 0; i < 3; ++i) {
      prepareAndGo(2);
      const int seen = beats;
      EXPECT_TRUE(comesTrue([&] { return beats > seen; }));
    }
    hanging->mayEnd = true;
    hanging->mayEnd.notify_all();
  }
  EXPECT_EQ(hanging->prepared, 0);
}

// It uses the client's memory in place.
TEST_F(HangingDriverTest, AHostAloneThatItsClientMayNotEndIsWaitedFor) {
  LocalHost alone(fake_, {});
  auto device = HostedDevice::create("fake", alone.opener());
  ASSERT_TRUE(device) << device.error().toString();
  const auto prepared =
      (*device)->prepareModel(std::make_shared<const graph::Model>(addModel({2})), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto execution = (*prepared)->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  fake_->ignoresDeadlines = true;
  for (int i = 0; i < 3; ++i) {
    fake_->hold();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      fake_->letGo();
    });
    const hal::ExecutionResult result =
        (*execution)->compute(base::Deadline::after(100 * kMillisecond));
    later.join();
    EXPECT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out_, ElementsAre(11, 22));
  }
  EXPECT_EQ((*device)->state().restarts, 0u);
}

}  // namespace
}  // namespace hearth::ipc
