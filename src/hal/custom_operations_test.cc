// SPDX-License-Identifier: Apache-2.0
#include "hal/custom_operations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace hearth::hal {
namespace {

using graph::OperationType;

// A device that claims to run everything.
class EagerDevice final : public Device {
 public:
  explicit EagerDevice(std::vector<std::string> extensions) : extensions_(std::move(extensions)) {}
  std::string name() const override { return "eager"; }
  std::string version() const override { return "1"; }
  DeviceType type() const override { return DeviceType::kAccelerator; }
  int64_t featureLevel() const override { return 1000007; }
  Capabilities capabilities() const override { return {}; }
  std::vector<std::string> supportedExtensions() const override { return extensions_; }
  Result<std::vector<OperationSupport>> supportedOperations(const graph::Model& model) override {
    return std::vector<OperationSupport>(model.main().operations.size(), {true, "", ""});
  }
  Result<std::shared_ptr<PreparedModel>> prepareModel(std::shared_ptr<const graph::Model>,
                                                      const PrepareOptions&, Cache) override {
    return fail(ErrorCode::kUnsupported, "It prepares nothing.");
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
  leaveOutCustomOperations(device, model, &*support);
  std::string answers;
  for (const OperationSupport& one : *support) {
    answers += one.supported ? "+" : "-";
    EXPECT_EQ(one.reason.empty(), one.supported);
  }
  return answers;
}

TEST(CustomOperationsTest, OnlyDevicesThatDeclareThemGetThem) {
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

}  // namespace
}  // namespace hearth::hal
