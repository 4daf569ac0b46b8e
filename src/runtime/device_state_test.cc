// SPDX-License-Identifier: Apache-2.0
// States in the memory of a device, the CPU's implementation of Vulkan: in this process and behind
// a host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/reference/reference_device.h"
#include "drivers/vulkan/testing/validated_device.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/model_builder.h"
#include "hal/testing/stub_devices.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/local_host.h"
#include "runtime/compilation.h"
#include "runtime/execution.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;
using Four = std::array<float, 4>;

constexpr OperandType kReal = OperandType::kTensorFloat32;

hal::Argument argumentOf(Four& values) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = values.data();
  argument.length = sizeof values;
  return argument;
}

// What fails of a device while it is to fail.
class FailingExecution final : public hal::Execution {
 public:
  FailingExecution(std::unique_ptr<hal::Execution> execution, std::shared_ptr<const bool> fails)
      : execution_(std::move(execution)), fails_(std::move(fails)) {}
  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    if (!*fails_) return execution_->compute(deadline);
    hal::ExecutionResult result;
    result.status = fail(ErrorCode::kOpFailed, "The device fails as told.");
    return result;
  }

 private:
  const std::unique_ptr<hal::Execution> execution_;
  const std::shared_ptr<const bool> fails_;
};

class FailingModel final : public hal::PreparedModel {
 public:
  FailingModel(std::shared_ptr<hal::PreparedModel> model, std::shared_ptr<const bool> fails)
      : model_(std::move(model)), fails_(std::move(fails)) {}
  const std::shared_ptr<hal::PreparedModel>& model() const { return model_; }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    HEARTH_ASSIGN(auto execution, model_->createExecution(std::move(request)));
    return std::make_unique<FailingExecution>(std::move(execution), fails_);
  }
  hal::StartReport startReport() const override { return model_->startReport(); }

 private:
  const std::shared_ptr<hal::PreparedModel> model_;
  const std::shared_ptr<const bool> fails_;
};

// A device whose executions fail, and that allocates nothing, while `*fails` is set.
class FailingDevice final : public hal::ForwardingDevice {
 public:
  FailingDevice(std::shared_ptr<hal::Device> device, std::shared_ptr<const bool> fails)
      : ForwardingDevice(device), device_(std::move(device)), fails_(std::move(fails)) {}
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override {
    HEARTH_ASSIGN(auto prepared,
                  device_->prepareModel(std::move(model), options, std::move(cache)));
    return std::make_shared<FailingModel>(std::move(prepared), fails_);
  }
  Result<std::unique_ptr<hal::Buffer>> allocate(
      const hal::BufferDescription& description,
      const std::vector<hal::BufferRole>& roles) override {
    if (*fails_) return fail(ErrorCode::kOpFailed, "The device has no memory, as told.");
    std::vector<hal::BufferRole> own = roles;
    for (hal::BufferRole& role : own)
      role.preparedModel = dynamic_cast<const FailingModel&>(*role.preparedModel).model();
    return device_->allocate(description, own);
  }

 private:
  const std::shared_ptr<hal::Device> device_;
  const std::shared_ptr<const bool> fails_;
};

// Its argument is whether the device is behind a host.
class DeviceStateTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto device = vulkan::createValidatedDevice();
    if (!device && device.error().code() == ErrorCode::kUnsupported)
      GTEST_SKIP() << device.error().toString();
    ASSERT_TRUE(device) << device.error().toString();
    device_ = *std::move(device);
    if (!GetParam()) return;
    host_ = std::make_unique<ipc::LocalHost>(std::move(device_), ipc::HostOptions{});
    auto hosted = ipc::HostedDevice::create(vulkan::kVulkanDeviceName, host_->opener());
    ASSERT_TRUE(hosted) << hosted.error().toString();
    device_ = *std::move(hosted);
  }

  // y = x + state; the state becomes 2 y, and begins with 1, 2, 3, 4. On the device, which the
  // client names, or which the runtime chooses before the reference device.
  std::shared_ptr<Execution> execution(bool isNamed = true) {
    hal::cts::ModelBuilder builder;
    const uint32_t x = builder.input(kReal, {4});
    const uint32_t state = builder.input(kReal, {4});
    const uint32_t none = builder.scalar(int32_t{0});
    const uint32_t y = builder.output(kReal, {4});
    builder.operation(OperationType::kAdd, {x, state, none}, {y});
    const uint32_t next = builder.output(kReal, {4});
    builder.operation(OperationType::kAdd, {y, y, none}, {next});
    graph::StatePair pair{1, 1, std::vector<uint8_t>(sizeof(Four))};
    const Four initial = {1, 2, 3, 4};
    std::memcpy(pair.initialValue.data(), initial.data(), sizeof initial);
    CompilationOptions options;
    const auto device = std::make_shared<FailingDevice>(device_, fails_);
    if (isNamed) options.devices = {device};
    const auto compiled =
        Compilation::create(std::make_shared<const graph::Model>(builder.model()), {pair}, options,
                            DeviceManager({device, drivers::reference::createDevice()}));
    EXPECT_TRUE(compiled) << compiled.error().toString();
    if (!compiled) return nullptr;
    EXPECT_EQ((*compiled)->deviceNames(), device->name());
    auto made = Execution::create(*compiled);
    EXPECT_TRUE(made) << made.error().toString();
    if (!made) return nullptr;
    EXPECT_TRUE((*made)->setInput(0, argumentOf(x_)));
    EXPECT_TRUE((*made)->setOutput(0, argumentOf(y_)));
    return *std::move(made);
  }

  // Runs from the first state on.
  void expectRuns(Execution& execution, int count) {
    state_ = {1, 2, 3, 4};
    expectMoreRuns(execution, count);
  }
  void expectMoreRuns(Execution& execution, int count) {
    for (int run = 0; run < count; ++run) {
      for (float& value : x_) value = static_cast<float>(run + 1);
      const Status computed = execution.compute({});
      ASSERT_TRUE(computed) << computed.error().toString();
      for (size_t i = 0; i < state_.size(); ++i) {
        ASSERT_EQ(y_[i], x_[i] + state_[i]) << "run " << run;
        state_[i] = 2 * y_[i];
      }
    }
  }
  // What a run copies if the state is not among it.
  static uint64_t argumentBytes() {
    // In a host, arguments behind pointers are copied once more.
    return (GetParam() ? 2 : 1) * (sizeof x_ + sizeof y_);
  }

  std::unique_ptr<ipc::LocalHost> host_;
  std::shared_ptr<hal::Device> device_;
  const std::shared_ptr<bool> fails_ = std::make_shared<bool>(false);
  Four x_ = {};
  Four y_ = {};
  Four state_ = {};  // that the next run reads
};

TEST_P(DeviceStateTest, GoesFromRunToRunWithoutACopy) {
  const auto run = execution();
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 5);
  EXPECT_EQ(run->statistics().copiedBytes, argumentBytes());
  ASSERT_TRUE(run->resetState());
  expectRuns(*run, 3);
}

TEST_P(DeviceStateTest, StaysOnADeviceThatTheRuntimeHasChosen) {
  const auto run = execution(false);
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 5);
  EXPECT_EQ(run->statistics().copiedBytes, argumentBytes());
  ASSERT_TRUE(run->resetState());
  expectRuns(*run, 3);
  EXPECT_EQ(run->statistics().copiedBytes, argumentBytes());
}

TEST_P(DeviceStateTest, IsReadWhereAnotherDeviceComputesWhatFails) {
  for (const int runsBefore : {0, 1, 2}) {
    const auto run = execution(false);
    ASSERT_NE(run, nullptr);
    expectRuns(*run, runsBefore);
    *fails_ = true;
    expectMoreRuns(*run, 3);
    *fails_ = false;
    expectMoreRuns(*run, 3);
    ASSERT_TRUE(run->resetState());
    expectRuns(*run, 2);
  }
}

TEST_P(DeviceStateTest, NoOtherDeviceComputesForOneThatIsNamed) {
  const auto run = execution();
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 2);
  *fails_ = true;
  EXPECT_FALSE(run->compute({}));
  *fails_ = false;
  expectMoreRuns(*run, 2);
}

TEST_P(DeviceStateTest, IsKeptWhenARunFails) {
  const auto run = execution();
  ASSERT_NE(run, nullptr);
  x_ = {1, 1, 1, 1};
  ASSERT_TRUE(run->compute({}));
  ASSERT_FALSE(run->compute(base::Deadline::after(1)));
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(y_, (Four{5, 7, 9, 11}));
}

class HostedStateTest : public DeviceStateTest {};

TEST_P(HostedStateTest, BeginsAgainInAHostThatIsStartedAgain) {
  const auto run = execution();
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 2);
  host_->kill();
  EXPECT_FALSE(run->compute({}));
  ASSERT_TRUE(run->resetState());
  expectRuns(*run, 3);
}

TEST_P(HostedStateTest, BeginsAgainElsewhereIfTheRuntimeHasChosenADeviceThatIsGone) {
  const auto run = execution(false);
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 2);
  host_->kill();
  EXPECT_FALSE(run->compute({}));
  *fails_ = true;
  ASSERT_TRUE(run->resetState());
  expectRuns(*run, 3);
}

INSTANTIATE_TEST_SUITE_P(Hosted, HostedStateTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Places, DeviceStateTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "hosted" : "in_process";
                         });

}  // namespace
}  // namespace hearth::runtime
