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

#include "drivers/vulkan/testing/validated_device.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/model_builder.h"
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

  // y = x + state; the state becomes 2 y, and begins with 1, 2, 3, 4.
  std::shared_ptr<Execution> execution() {
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
    options.devices = {device_};
    const auto compiled = Compilation::create(std::make_shared<const graph::Model>(builder.model()),
                                              {pair}, options, DeviceManager({device_}));
    EXPECT_TRUE(compiled) << compiled.error().toString();
    if (!compiled) return nullptr;
    auto made = Execution::create(*compiled);
    EXPECT_TRUE(made) << made.error().toString();
    if (!made) return nullptr;
    EXPECT_TRUE((*made)->setInput(0, argumentOf(x_)));
    EXPECT_TRUE((*made)->setOutput(0, argumentOf(y_)));
    return *std::move(made);
  }

  // Runs from the first state on.
  void expectRuns(Execution& execution, int count) {
    Four state = {1, 2, 3, 4};
    for (int run = 0; run < count; ++run) {
      for (float& value : x_) value = static_cast<float>(run + 1);
      const Status computed = execution.compute({});
      ASSERT_TRUE(computed) << computed.error().toString();
      for (size_t i = 0; i < state.size(); ++i) {
        ASSERT_EQ(y_[i], x_[i] + state[i]) << "run " << run;
        state[i] = 2 * y_[i];
      }
    }
  }

  std::unique_ptr<ipc::LocalHost> host_;
  std::shared_ptr<hal::Device> device_;
  Four x_ = {};
  Four y_ = {};
};

TEST_P(DeviceStateTest, GoesFromRunToRunWithoutACopy) {
  const auto run = execution();
  ASSERT_NE(run, nullptr);
  expectRuns(*run, 5);
  // In a host, arguments behind pointers are copied once more.
  const uint64_t arguments = sizeof x_ + sizeof y_;
  EXPECT_EQ(run->statistics().copiedBytes, GetParam() ? 2 * arguments : arguments);
  ASSERT_TRUE(run->resetState());
  expectRuns(*run, 3);
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

INSTANTIATE_TEST_SUITE_P(Hosted, HostedStateTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Places, DeviceStateTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "hosted" : "in_process";
                         });

}  // namespace
}  // namespace hearth::runtime
