// SPDX-License-Identifier: Apache-2.0
// Which devices run a model whose speeds are known.
#include "runtime/priced_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hal/testing/stub_devices.h"
#include "runtime/device_manager.h"
#include "runtime/partitioner.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A chain of fully connected layers (n x n) and RELUs over tensors of 1 x n.
class Chain {
 public:
  explicit Chain(uint32_t size) : size_(size) {
    model_.subgraphs.emplace_back();
    last_ = tensor({1, size}, graph::Lifetime::kSubgraphInput);
    main().inputs = {last_};
  }
  Chain& dense() {
    const uint32_t weights = tensor({size_, size_}, graph::Lifetime::kConstantCopy);
    const uint32_t bias = tensor({size_}, graph::Lifetime::kConstantCopy);
    return add(OperationType::kFullyConnected, {last_, weights, bias});
  }
  Chain& relu() { return add(OperationType::kRelu, {last_}); }

  const graph::Model& model() {
    main().outputs = {last_};
    main().operands[last_].lifetime = graph::Lifetime::kSubgraphOutput;
    return model_;
  }

 private:
  graph::Subgraph& main() { return model_.main(); }
  uint32_t tensor(graph::Dimensions dimensions, graph::Lifetime lifetime) {
    graph::Operand& operand = main().operands.emplace_back();
    operand.type = OperandType::kTensorFloat32;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = lifetime;
    return static_cast<uint32_t>(main().operands.size() - 1);
  }
  Chain& add(OperationType type, std::vector<uint32_t> inputs) {
    last_ = tensor({1, size_}, graph::Lifetime::kTemporary);
    main().operations.push_back({type, std::move(inputs), {last_}, ""});
    return *this;
  }

  const uint32_t size_;
  graph::Model model_;
  uint32_t last_ = 0;
};

// Slow at products, and at once there.
constexpr DeviceSpeed kCpu{1e-6, 1e-6, 0, 0, {1e-9, 1e-9, 1e-9}};
// A thousand times as fast at products, but far away.
constexpr DeviceSpeed kGpu{1e-3, 1e-6, 1e-7, 0, {1e-12, 1e-12, 1e-12}};

std::vector<bool> allBut(const graph::Model& model, OperationType left) {
  std::vector<bool> takes;
  for (const graph::Operation& operation : model.main().operations)
    takes.push_back(operation.type != left);
  return takes;
}

PricedChoice choose(const graph::Model& model, std::vector<bool> gpuTakes) {
  const std::vector<bool> all(model.main().operations.size(), true);
  const std::vector<PricedDevice> devices = {{"cpu", kCpu, all},
                                             {"gpu", kGpu, std::move(gpuTakes)}};
  const std::vector<size_t> others(all.size(), 0);
  return chooseByPrice(model, Prices(model), devices, others);
}

TEST(PricedChoiceTest, ALargeModelGoesToTheFastDevice) {
  Chain chain(4096);
  chain.dense().relu().dense().relu();
  const PricedChoice choice = choose(chain.model(), std::vector<bool>(4, true));
  EXPECT_THAT(choice.deviceOf, Each(1u));
  EXPECT_THAT(choice.reason, HasSubstr("cpu alone 33.6 ms, gpu alone "));
  EXPECT_THAT(choice.reason, HasSubstr("taken gpu"));
}

TEST(PricedChoiceTest, ASmallModelIsNotWorthTheWay) {
  Chain chain(16);
  chain.dense().relu().dense().relu();
  EXPECT_THAT(choose(chain.model(), std::vector<bool>(4, true)).deviceOf, Each(0u));
}

TEST(PricedChoiceTest, WhatTheFastDeviceLacksIsDoneElsewhereWhereThatPays) {
  Chain large(4096);
  large.dense().relu().dense();
  const PricedChoice divided = choose(large.model(), allBut(large.model(), OperationType::kRelu));
  EXPECT_THAT(divided.deviceOf, ElementsAre(1, 0, 1));
  EXPECT_THAT(divided.reason, HasSubstr("taken a division of "));
  EXPECT_THAT(divided.reason, Not(HasSubstr("gpu alone")));
  // 4.2 ms for a layer on the CPU; its execution and the bytes cost the GPU a quarter more.
  Chain small(1024);
  small.dense().relu().dense();
  EXPECT_THAT(choose(small.model(), allBut(small.model(), OperationType::kRelu)).deviceOf,
              Each(0u));
}

TEST(PricedChoiceTest, WhatAllTakeIsDividedByWhatEachIsFastAt) {
  Chain chain(4096);
  chain.dense().relu().dense();
  // The GPU loses 5 ms with each operation, and the last one is the slowest at all of them.
  const DeviceSpeed gpu{1e-4, 5e-3, 0, 0, {1e-12, 1e-12, 1e-12}};
  const DeviceSpeed slow{1e-3, 1e-2, 0, 0, {1e-8, 1e-8, 1e-8}};
  const std::vector<bool> all(3, true);
  const std::vector<PricedDevice> devices = {
      {"cpu", kCpu, all}, {"gpu", gpu, all}, {"slow", slow, all}};
  const std::vector<size_t> others(3, 0);
  const graph::Model& model = chain.model();
  EXPECT_THAT(chooseByPrice(model, Prices(model), devices, others).deviceOf, ElementsAre(1, 0, 1));
}

TEST(PricedChoiceTest, ALittleTimeIsNotWorthADivision) {
  // 1.96 ms on the CPU and 1.80 divided; 2.10 and 1.83 with larger layers.
  for (const auto& [size, device] : {std::pair(990u, size_t{0}), std::pair(1024u, size_t{1})}) {
    Chain chain(size);
    chain.dense().dense().relu();
    EXPECT_THAT(choose(chain.model(), allBut(chain.model(), OperationType::kRelu)).deviceOf,
                ElementsAre(device, device, 0u));
  }
}

TEST(PricedChoiceTest, StretchesThatPayAreTakenFromOthersThatDoNot) {
  // The beginning goes back and forth on the GPU, the end stays there.
  Chain chain(1024);
  for (int i = 0; i < 4; ++i) chain.dense().relu();
  for (int i = 0; i < 20; ++i) chain.dense();
  const PricedChoice choice = choose(chain.model(), allBut(chain.model(), OperationType::kRelu));
  std::vector<size_t> expected(28, 1);
  std::fill_n(expected.begin(), 8, 0);
  EXPECT_EQ(choice.deviceOf, expected);
}

TEST(PricedChoiceTest, UnpricedDevicesKeepWhatNobodyElseTakes) {
  Chain chain(4096);
  chain.dense().relu().dense();
  const graph::Model& model = chain.model();
  const std::vector<bool> layers = allBut(model, OperationType::kRelu);
  const std::vector<PricedDevice> devices = {
      {"cpu", kCpu, layers}, {"gpu", kGpu, layers}, {"reference", std::nullopt, {}}};
  const std::vector<size_t> others = {1, 2, 1};
  EXPECT_THAT(chooseByPrice(model, Prices(model), devices, others).deviceOf, ElementsAre(1, 2, 1));
}

// Chains of ten operations of which the fast device lacks any: never dearer than a device alone,
// and near the best of all divisions.
TEST(PricedChoiceTest, ChoicesAreNearTheBestOfAllDivisions) {
  std::minstd_rand random(3);
  for (int trial = 0; trial < 60; ++trial) {
    constexpr size_t kOperations = 10;
    Chain chain(512 << random() % 4);
    for (size_t i = 0; i < kOperations; ++i) random() % 3 == 0 ? chain.relu() : chain.dense();
    const graph::Model& model = chain.model();
    std::vector<bool> takes(kOperations);
    for (size_t i = 0; i < kOperations; ++i) takes[i] = random() % 4 != 0;
    const Prices prices(model);
    const std::vector<std::optional<DeviceSpeed>> speeds = {kCpu, kGpu};
    double best = 1e9;
    for (uint32_t division = 0; division < 1u << kOperations; ++division) {
      std::vector<size_t> deviceOf(kOperations);
      bool isPossible = true;
      for (size_t i = 0; i < kOperations; ++i) {
        deviceOf[i] = division >> i & 1;
        isPossible = isPossible && (deviceOf[i] == 0 || takes[i]);
      }
      if (isPossible)
        best = std::min(best, prices.ofSteps(speeds, partitionSteps(model.main(), deviceOf, 2)));
    }
    const PricedChoice choice = choose(model, takes);
    const double cpuAlone = prices.ofSteps(
        speeds, partitionSteps(model.main(), std::vector<size_t>(kOperations, 0), 2));
    EXPECT_LE(choice.seconds, cpuAlone);
    EXPECT_LE(choice.seconds, 1.12 * best) << "trial " << trial;
  }
}

// Takes all operations but one type, at a price of its own.
class TakingDevice final : public hal::StubDevice {
 public:
  TakingDevice(std::string name, float price, OperationType left = OperationType::kAbs)
      : StubDevice(std::move(name)), price_(price), left_(left) {}
  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    capabilities.operandPerformance[OperandType::kTensorFloat32].execTime = price_;
    return capabilities;
  }
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    std::vector<hal::OperationSupport> supports;
    for (const bool takes : allBut(model, left_)) supports.push_back({takes, "", ""});
    return supports;
  }

 private:
  const float price_;
  const OperationType left_;
};

class PricedPartitionTest : public testing::Test {
 protected:
  PricedPartitionTest() { options_.driverOptions["store_mode"] = "off"; }

  // The devices of the steps.
  std::vector<std::string> divide(std::vector<std::string> measured) {
    DeviceSpeeds speeds(std::move(measured),
                        [&](hal::Device& device, std::span<const NumberKind>, unsigned,
                            DeviceSpeed* speed) -> Status {
                          ++measurements_;
                          if (fails_)
                            return fail(ErrorCode::kOpFailed, "The device fails as told.");
                          *speed = device.name() == "gpu" ? kGpu : kCpu;
                          return {};
                        });
    const auto made = partition(chain_.model(), devices_, options_, &speeds);
    if (!made) return {made.error().toString()};
    reason_ = made->reason;
    std::vector<std::string> names;
    for (const PartitionStep& step : made->steps) names.push_back(devices_[step.device]->name());
    return names;
  }

  Chain chain_ = std::move(Chain(16).dense().relu());
  // By its own figures the GPU is the fastest.
  std::vector<std::shared_ptr<hal::Device>> devices_ = {
      std::make_shared<TakingDevice>("cpu", 0.5f), std::make_shared<TakingDevice>("gpu", 0.1f),
      std::make_shared<TakingDevice>(kReferenceDeviceName, 1.0f)};
  hal::PrepareOptions options_;
  int measurements_ = 0;
  bool fails_ = false;
  std::string reason_;
};

TEST_F(PricedPartitionTest, MeasuredSpeedsDecide) {
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("cpu"));
  EXPECT_THAT(reason_, HasSubstr("taken cpu"));
  EXPECT_EQ(measurements_, 2);
}

TEST_F(PricedPartitionTest, TheirOwnFiguresDecideWhereOneIsNotMeasured) {
  EXPECT_THAT(divide({"cpu"}), ElementsAre("gpu"));
  EXPECT_THAT(reason_, IsEmpty());
  EXPECT_EQ(measurements_, 0);
  devices_.insert(devices_.begin(), std::make_shared<TakingDevice>("vendor", 0.01f));
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("vendor"));
  EXPECT_EQ(measurements_, 0);
}

TEST_F(PricedPartitionTest, TheirOwnFiguresDecideWhereMeasuringFails) {
  fails_ = true;
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("gpu"));
  EXPECT_THAT(reason_, IsEmpty());
}

TEST_F(PricedPartitionTest, TheirOwnFiguresDecideWhereLowPowerIsWanted) {
  options_.preference = hal::Preference::kLowPower;
  // By power all are equal: the reference wins.
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre(kReferenceDeviceName));
  EXPECT_EQ(measurements_, 0);
}

TEST_F(PricedPartitionTest, NothingIsMeasuredForOneDevice) {
  devices_.erase(devices_.begin() + 1);
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("cpu"));
  devices_ = {devices_[0]};
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("cpu"));
  EXPECT_EQ(measurements_, 0);
}

TEST_F(PricedPartitionTest, TheReferenceKeepsWhatOnlyItTakes) {
  devices_[0] = std::make_shared<TakingDevice>("cpu", 0.5f, OperationType::kRelu);
  devices_[1] = std::make_shared<TakingDevice>("gpu", 0.1f, OperationType::kRelu);
  EXPECT_THAT(divide({"cpu", "gpu"}), ElementsAre("cpu", kReferenceDeviceName));
}

}  // namespace
}  // namespace hearth::runtime
