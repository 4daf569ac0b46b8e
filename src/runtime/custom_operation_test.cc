// SPDX-License-Identifier: Apache-2.0
// A model whose custom operation and other operations run on different devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/extension_operations.h"
#include "hal/testing/stub_devices.h"
#include "ops/custom_operator.h"
#include "runtime/partitioned_model.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;
using testing::ElementsAre;

// Adds 1 to each float.
class AddOne final : public ops::CustomOperator, public ops::CustomNode {
 public:
  std::string_view name() const override { return "AddOne"; }
  int32_t version() const override { return 1; }
  Result<std::shared_ptr<const ops::CustomNode>> makeNode(const ops::CustomCall&) const override {
    return std::shared_ptr<const ops::CustomNode>(std::shared_ptr<void>(), this);
  }
  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    graph::Operand output;
    output.dimensions = call.inputs[0].dimensions;
    return ops::CustomOutputs{false, {output}};
  }
  Status compute(const ops::CustomCall& call) const override {
    for (uint64_t i = 0; i < call.inputs[0].elementCount(); ++i)
      call.outputs[0].as<float>()[i] = call.inputs[0].as<float>()[i] + 1;
    return {};
  }
};

// A fast device that claims to run everything.
class EagerDevice final : public hal::ForwardingDevice {
 public:
  explicit EagerDevice(std::vector<std::string> extensions)
      : ForwardingDevice(drivers::reference::createDevice()), extensions_(std::move(extensions)) {}
  std::string name() const override { return "eager"; }
  hal::DeviceType type() const override { return hal::DeviceType::kAccelerator; }
  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities = ForwardingDevice::capabilities();
    for (auto& [type, performance] : capabilities.operandPerformance) performance.execTime = 0.001f;
    return capabilities;
  }
  std::vector<std::string> supportedExtensions() const override { return extensions_; }
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    return std::vector<hal::OperationSupport>(model.main().operations.size(), {true, "", ""});
  }

 private:
  const std::vector<std::string> extensions_;
};

// y = -(|x| + 1) + 1, where an operator of the program adds the ones.
class ModelMaker {
 public:
  ModelMaker() { model_->subgraphs.resize(1); }

  std::shared_ptr<const graph::Model> make() {
    const uint32_t name = constant(OperandType::kTensorQuant8Asymm, {6}, "AddOne", 6);
    main().operands[name].scale = 1;
    const int32_t one = 1;
    const uint32_t version = constant(OperandType::kInt32, {}, &one, sizeof one);
    const uint32_t options = tensor(graph::Lifetime::kNoValue);
    main().operands[options].type = OperandType::kTensorQuant8Asymm;
    main().operands[options].dimensions.clear();
    const uint32_t x = tensor(graph::Lifetime::kSubgraphInput);
    const uint32_t magnitude = tensor(graph::Lifetime::kTemporary);
    const uint32_t more = tensor(graph::Lifetime::kTemporary);
    const uint32_t negative = tensor(graph::Lifetime::kTemporary);
    const uint32_t y = tensor(graph::Lifetime::kSubgraphOutput);
    main().inputs = {x};
    main().outputs = {y};
    main().operations = {
        {OperationType::kAbs, {x}, {magnitude}, ""},
        {OperationType::kCustom, {name, version, version, options, magnitude}, {more}, ""},
        {OperationType::kNeg, {more}, {negative}, ""},
        {OperationType::kCustom, {name, version, version, options, negative}, {y}, ""}};
    return model_;
  }

 private:
  graph::Subgraph& main() { return model_->main(); }

  uint32_t tensor(graph::Lifetime lifetime) {
    graph::Operand& operand = main().operands.emplace_back();
    operand.dimensions = {3};
    operand.lifetime = lifetime;
    return static_cast<uint32_t>(main().operands.size() - 1);
  }

  uint32_t constant(OperandType type, graph::Dimensions dimensions, const void* data, size_t size) {
    const uint32_t index = tensor(graph::Lifetime::kConstantCopy);
    graph::Operand& operand = main().operands[index];
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.location = {0, model_->constantBytes.size(), size};
    model_->constantBytes.resize(model_->constantBytes.size() + 8);
    std::memcpy(model_->constantBytes.data() + operand.location.offset, data, size);
    return index;
  }

  std::shared_ptr<graph::Model> model_ = std::make_shared<graph::Model>();
};

class CustomPartitionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(ops::registerCustomOperator(std::make_unique<AddOne>()));
  }

  // The devices of the parts; y has the result.
  std::vector<std::string> run(std::vector<std::string> extensions) {
    const std::vector<std::shared_ptr<hal::Device>> devices = {
        std::make_shared<EagerDevice>(std::move(extensions)), cpu::createCpuDevice(),
        drivers::reference::createDevice()};
    const auto made = preparePartitioned(ModelMaker().make(), devices, {});
    if (!made) return {made.error().toString()};
    std::vector<float> x = {1, -2, 3};
    y.assign(3, 0);
    hal::Request request;
    const auto add = [](std::vector<float>& values, std::vector<hal::Argument>* arguments) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = values.data();
      argument.length = values.size() * sizeof(float);
      arguments->push_back(std::move(argument));
    };
    add(x, &request.inputs);
    add(y, &request.outputs);
    const auto execution = made->prepared->createExecution(std::move(request));
    if (!execution) return {execution.error().toString()};
    const hal::ExecutionResult result = (*execution)->compute({});
    if (!result.status) return {result.status.error().toString()};
    return made->devices;
  }

  std::vector<float> y;
};

TEST_F(CustomPartitionTest, ADeviceThatDoesNotDeclareThemGetsNone) {
  EXPECT_THAT(run({"hearth.tflite"}), ElementsAre("eager", "hearth-cpu", "eager", "hearth-cpu"));
  EXPECT_THAT(y, ElementsAre(-1, -2, -3));
}

TEST_F(CustomPartitionTest, ADeviceThatDeclaresThemGetsThem) {
  EXPECT_THAT(run({"hearth.tflite", std::string(hal::kCustomExtensionName)}), ElementsAre("eager"));
  EXPECT_THAT(y, ElementsAre(-1, -2, -3));
}

}  // namespace
}  // namespace hearth::runtime
