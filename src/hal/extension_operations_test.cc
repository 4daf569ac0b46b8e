// SPDX-License-Identifier: Apache-2.0
#include "hal/extension_operations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "hal/device_operators.h"
#include "hal/testing/stub_devices.h"
#include "ops/device_operator.h"

namespace hearth::hal {
namespace {

using graph::OperationType;

// A device that claims to run everything.
class EagerDevice final : public StubDevice {
 public:
  explicit EagerDevice(std::vector<std::string> extensions)
      : StubDevice("eager"), extensions_(std::move(extensions)) {}
  std::vector<std::string> supportedExtensions() const override { return extensions_; }
  Result<std::vector<OperationSupport>> supportedOperations(const graph::Model& model) override {
    return std::vector<OperationSupport>(model.main().operations.size(), {true, "", ""});
  }

 private:
  const std::vector<std::string> extensions_;
};

std::string answersOf(EagerDevice device, const std::vector<std::vector<OperationType>>& graphs) {
  graph::Model model;
  for (const auto& types : graphs) {
    graph::Subgraph& subgraph = model.subgraphs.emplace_back();
    for (const OperationType type : types) subgraph.operations.emplace_back().type = type;
  }
  auto support = device.supportedOperations(model);
  leaveOutExtensionOperations(device, model, &*support);
  std::string answers;
  for (const OperationSupport& one : *support) {
    answers += one.supported ? "+" : "-";
    EXPECT_EQ(one.reason.empty(), one.supported);
  }
  return answers;
}

TEST(ExtensionOperationsTest, OnlyDevicesThatDeclareThemGetThem) {
  const std::vector<std::vector<OperationType>> plain = {
      {OperationType::kAdd, OperationType::kCustom, OperationType::kWhile}};
  EXPECT_EQ(answersOf(EagerDevice({"hearth.tflite"}), plain), "+-+");
  EXPECT_EQ(answersOf(EagerDevice({"hearth.tflite", "hearth.custom"}), plain), "+++");
  const std::vector<std::vector<OperationType>> nested = {
      {OperationType::kAdd, OperationType::kIf, OperationType::kWhile}, {OperationType::kCustom}};
  EXPECT_EQ(answersOf(EagerDevice({"hearth.tflite"}), nested), "+--");
  EXPECT_EQ(answersOf(EagerDevice({"hearth.custom"}), nested), "+++");
  EXPECT_EQ(answersOf(EagerDevice({}), {{OperationType::kAdd, OperationType::kIf}}), "++");
}

// A model with ADD, an operation of the extension "com.example" and, if `isNested`, an IF with such
// an operation inside; ADD has the operand type.
std::string answersOf(const EagerDevice& device, graph::OperandType type, bool isNested) {
  constexpr int32_t kPrefix = 7 << 16;
  graph::Model model;
  model.extensions = {{7, "com.example"}};
  for (int i = 0; i < (isNested ? 2 : 1); ++i) {
    graph::Subgraph& subgraph = model.subgraphs.emplace_back();
    subgraph.operands.emplace_back().type = type;
    subgraph.operations.push_back({OperationType::kAdd, {0}, {0}, ""});
    if (i == 0 && isNested) subgraph.operations.push_back({OperationType::kIf, {}, {}, ""});
    if (i == 1 || !isNested)
      subgraph.operations.push_back({static_cast<OperationType>(kPrefix | 3), {}, {}, ""});
  }
  std::vector<OperationSupport> support(2, {true, "", ""});
  leaveOutExtensionOperations(device, model, &support);
  std::string answers;
  for (const OperationSupport& one : support) {
    answers += one.supported ? "+" : "-";
    if (!one.supported) {
      EXPECT_EQ(one.reason, "The device does not have the extension \"com.example\".");
    }
  }
  return answers;
}

TEST(ExtensionOperationsTest, OnlyDevicesWithTheExtensionGetItsOperationsAndOperands) {
  const auto floats = graph::OperandType::kTensorFloat32;
  const auto own = static_cast<graph::OperandType>((7 << 16) | 3);
  const EagerDevice with({"com.example"});
  const EagerDevice without({"com.example.other", "hearth.tflite", "hearth.custom"});
  for (const bool isNested : {false, true}) {
    EXPECT_EQ(answersOf(with, floats, isNested), "++");
    EXPECT_EQ(answersOf(with, own, isNested), "++");
    EXPECT_EQ(answersOf(without, floats, isNested), "+-");
    EXPECT_EQ(answersOf(without, own, isNested), "--");
  }
}

TEST(ExtensionOperationsTest, OperatorsOfDevicesGoToThoseThatNameThem) {
  ASSERT_TRUE(ops::registerDeviceOperator("Hal_Device"));
  graph::Model model;
  graph::Subgraph& main = model.subgraphs.emplace_back();
  graph::Operand& name = main.operands.emplace_back();
  name.type = graph::OperandType::kTensorQuant8Asymm;
  name.lifetime = graph::Lifetime::kConstantCopy;
  constexpr std::string_view kName = "Hal_Device";
  model.constantBytes.assign(kName.begin(), kName.end());
  name.location = {0, 0, kName.size()};
  main.operations.push_back({OperationType::kCustom, {0}, {}, ""});
  const auto answerOf = [&](std::vector<std::string> extensions) {
    const EagerDevice device(std::move(extensions));
    std::vector<OperationSupport> support(1, {true, "", ""});
    leaveOutExtensionOperations(device, model, &support);
    return support[0].reason;
  };
  EXPECT_EQ(answerOf({deviceOperatorExtension("Hal_Device")}), "");
  EXPECT_EQ(answerOf({"hearth.custom", deviceOperatorExtension("Hal_Other")}),
            "Only a device whose manifest names the custom operator \"Hal_Device\" computes it.");
}

TEST(ExtensionOperationsTest, StringsStayInTheProcess) {
  graph::Model model;
  graph::Subgraph& main = model.subgraphs.emplace_back();
  main.operands.emplace_back().type = graph::OperandType::kTensorString;
  main.operands.emplace_back().type = graph::OperandType::kTensorFloat32;
  main.operations.push_back({OperationType::kReshape, {0}, {0}, ""});
  main.operations.push_back({OperationType::kReshape, {1}, {1}, ""});
  const auto answerOf = [&](std::vector<std::string> extensions) {
    const EagerDevice device(std::move(extensions));
    std::vector<OperationSupport> support(2, {true, "", ""});
    leaveOutExtensionOperations(device, model, &support);
    EXPECT_TRUE(support[1].supported);
    return support[0].reason;
  };
  EXPECT_EQ(answerOf({"hearth.tflite", "hearth.strings"}), "");
  EXPECT_EQ(answerOf({"hearth.tflite"}),
            "The device is outside this process, which strings do not leave.");
}

}  // namespace
}  // namespace hearth::hal
