// SPDX-License-Identifier: Apache-2.0
// hearth-cpu behind one host, whose clients have a prepared model in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/fake_device.h"
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

// One element, enlarged to a square of float32 elements, and the mean of these.
std::shared_ptr<const graph::Model> enlargingModel(int32_t side) {
  using graph::OperandType;
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(OperandType::kTensorFloat32, {1, 1, 1, 1});
  const auto size = static_cast<uint32_t>(side);
  const uint32_t large = builder.temporary(OperandType::kTensorFloat32, {1, size, size, 1});
  builder.operation(graph::OperationType::kResizeNearestNeighbor,
                    {in, builder.scalar(side), builder.scalar(side), builder.scalar(false)},
                    {large});
  const uint32_t axes =
      builder.constant(OperandType::kTensorInt32, {2}, std::vector<int32_t>{1, 2});
  const uint32_t out = builder.output(OperandType::kTensorFloat32, {1, 1, 1, 1});
  builder.operation(graph::OperationType::kMean, {large, axes, builder.scalar(int32_t{1})}, {out});
  return std::make_shared<const graph::Model>(builder.model());
}

// A client with a connection of its own.
class Client {
 public:
  Client(const std::string& device, const ListeningHost& host) {
    auto made = HostedDevice::create(device, host.opener());
    EXPECT_TRUE(made) << made.error().toString();
    if (made) device_ = *made;
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepare(int32_t side) {
    return device_->prepareModel(enlargingModel(side), {.threads = 1}, {});
  }
  // The status of a computation whose result is right if it has one.
  static Status compute(hal::PreparedModel& prepared, float number) {
    std::vector<float> in(1, number);
    std::vector<float> out(1);
    const hal::ExecutionResult result =
        hal::cts::computeOnce(prepared, {{argumentFor(in)}, {argumentFor(out)}});
    EXPECT_TRUE(!result.status || out[0] == number) << out[0];
    return result.status;
  }

 private:
  std::shared_ptr<hal::Device> device_;
};

void expectTooMuch(const Status& status) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient);
  EXPECT_THAT(status.error().message(), testing::HasSubstr("393216 at a time are the limit"));
}

constexpr uint64_t kClientBytes = 384 << 10;
// Sides of squares of 256 KiB, or a little less, and of 1 MiB.
constexpr int32_t kFits = 256;
constexpr int32_t kFitsAlone = 254;
constexpr int32_t kTooLarge = 512;

// hearth-cpu allocates memory for intermediate results when it prepares a model, and keeps it.
TEST(SharedHost, MemoryOfPreparedModelsIsLimitedForEachClient) {
  const ListeningHost host(cpu::createCpuDevice(), {.bytes = kClientBytes});
  Client one("hearth-cpu", host);
  Client other("hearth-cpu", host);
  const auto statusOf = [](auto result) -> Status {
    if (!result) return std::unexpected(result.error());
    return {};
  };
  expectTooMuch(statusOf(one.prepare(kTooLarge)));
  auto first = one.prepare(kFits);
  ASSERT_TRUE(first) << first.error().toString();
  expectTooMuch(statusOf(one.prepare(kFitsAlone)));
  EXPECT_TRUE(Client::compute(**first, 3));
  // The other client has the same model, which counts for both.
  auto second = other.prepare(kFits);
  ASSERT_TRUE(second) << second.error().toString();
  expectTooMuch(statusOf(other.prepare(kFitsAlone)));
  // Who gives it up has its room again, also while the other one keeps it.
  first->reset();
  EXPECT_TRUE(comesTrue([&] { return one.prepare(kFitsAlone).has_value(); }));
  expectTooMuch(statusOf(other.prepare(kFitsAlone)));
  EXPECT_TRUE(Client::compute(**second, 5));
}

// Plain kernels allocate what they need while they compute, and free it.
TEST(SharedHost, MemoryOfComputationsIsLimitedForEachClient) {
  const ListeningHost host(drivers::reference::createDevice(), {.bytes = kClientBytes});
  Client one("nnapi-reference", host);
  Client other("nnapi-reference", host);
  auto large = one.prepare(kTooLarge);
  auto small = one.prepare(kFits);
  auto another = one.prepare(kFitsAlone);
  auto others = other.prepare(kFits);
  ASSERT_TRUE(large && small && another && others);
  for (int i = 0; i < 3; ++i) {
    expectTooMuch(Client::compute(**large, 1));
    for (const auto& model : {*small, *another, *others}) {
      const Status status = Client::compute(*model, 2);
      EXPECT_TRUE(status) << status.error().toString();
    }
  }
}

// Drivers allocate memory of the device for arguments, and clients give it up.
TEST(SharedHost, MemoryOfTheDeviceIsLimitedForEachClient) {
  constexpr uint32_t kElements = kFits * kFits;
  const ListeningHost host(std::make_shared<FakeDevice>(), {.bytes = kClientBytes});
  hal::cts::ModelBuilder builder;
  const auto real = graph::OperandType::kTensorFloat32;
  const uint32_t a = builder.input(real, {kElements});
  const uint32_t b = builder.input(real, {kElements});
  const uint32_t sum = builder.output(real, {kElements});
  builder.operation(graph::OperationType::kAdd, {a, b, builder.scalar(int32_t{0})}, {sum});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  struct Side {
    std::shared_ptr<hal::Device> device;
    std::shared_ptr<hal::PreparedModel> prepared;
    auto allocate() const { return device->allocate({{kElements}}, {{prepared, true, 0}}); }
  };
  std::vector<Side> sides;
  for (int i = 0; i < 2; ++i) {
    auto device = HostedDevice::create("fake", host.opener());
    ASSERT_TRUE(device) << device.error().toString();
    auto prepared = (*device)->prepareModel(model, {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    sides.push_back({*device, *prepared});
  }
  const auto expectFull = [&] {
    const auto more = sides[0].allocate();
    ASSERT_FALSE(more);
    expectTooMuch(std::unexpected(more.error()));
  };
  auto first = sides[0].allocate();
  ASSERT_TRUE(first) << first.error().toString();
  expectFull();
  EXPECT_TRUE(sides[1].allocate());
  first->reset();
  EXPECT_TRUE(comesTrue([&] {
    first = sides[0].allocate();
    return first.has_value();
  }));
  expectFull();
}

}  // namespace
}  // namespace hearth::ipc
