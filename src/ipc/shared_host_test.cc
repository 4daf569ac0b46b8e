// SPDX-License-Identifier: Apache-2.0
// hearth-cpu behind one host, whose clients have a prepared model in common.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/listening_host.h"

namespace hearth::ipc {
namespace {

using hal::cts::argumentFor;

constexpr uint32_t kWidth = 96;
constexpr int kLayers = 6;

// Fully connected layers one after the other, so that intermediate results of one client would show
// in those of another.
std::shared_ptr<const graph::Model> layersModel() {
  using graph::OperandType;
  hal::cts::ModelBuilder builder;
  uint32_t value = builder.input(OperandType::kTensorFloat32, {1, kWidth});
  const uint32_t none = builder.scalar(int32_t{0});
  for (int layer = 0; layer < kLayers; ++layer) {
    std::vector<float> weights(kWidth * kWidth);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>((i * 7 + static_cast<size_t>(layer)) % 11) * 0.01f - 0.05f;
    const uint32_t filter =
        builder.constant(OperandType::kTensorFloat32, {kWidth, kWidth}, weights);
    const uint32_t bias =
        builder.constant(OperandType::kTensorFloat32, {kWidth}, std::vector<float>(kWidth, 0.25f));
    const uint32_t next = layer + 1 < kLayers
                              ? builder.temporary(OperandType::kTensorFloat32, {1, kWidth})
                              : builder.output(OperandType::kTensorFloat32, {1, kWidth});
    builder.operation(graph::OperationType::kFullyConnected, {value, filter, bias, none}, {next});
    value = next;
  }
  return std::make_shared<const graph::Model>(builder.model());
}

std::vector<float> compute(hal::PreparedModel& prepared, float number) {
  std::vector<float> in(kWidth, number);
  std::vector<float> out(kWidth);
  const hal::ExecutionResult result =
      hal::cts::computeOnce(prepared, {{argumentFor(in)}, {argumentFor(out)}});
  EXPECT_TRUE(result.status) << result.status.error().toString();
  return out;
}

TEST(SharedHost, ClientsOfOneModelComputeAtOnceAndLeaveInAnyOrder) {
  const auto model = layersModel();
  const auto own = cpu::createCpuDevice();
  const auto expected = own->prepareModel(model, {.threads = 1}, {});
  ASSERT_TRUE(expected) << expected.error().toString();
  const ListeningHost host(cpu::createCpuDevice(), {});
  std::vector<std::shared_ptr<hal::PreparedModel>> clients;
  for (int i = 0; i < 4; ++i) {
    auto device = HostedDevice::create("hearth-cpu", host.opener());
    ASSERT_TRUE(device) << device.error().toString();
    auto prepared = (*device)->prepareModel(model, {.threads = 1}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    clients.push_back(*prepared);
  }
  const hal::StartReport first = clients[0]->startReport();
  const hal::StartReport second = clients[1]->startReport();
  EXPECT_EQ(second.activationBytes, first.activationBytes);
  EXPECT_TRUE(second.packedBytes.empty());
  while (!clients.empty()) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < clients.size(); ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 20; ++k) {
          const float number = static_cast<float>(i) + 0.01f * static_cast<float>(k);
          EXPECT_EQ(compute(*clients[i], number), compute(**expected, number));
        }
      });
    threads.clear();
    clients.erase(clients.begin());
  }
}

}  // namespace
}  // namespace hearth::ipc
