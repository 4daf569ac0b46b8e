// SPDX-License-Identifier: Apache-2.0
// The shapes and errors that executions report, on the built-in devices.
#include "runtime/execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/testing/stub_devices.h"
#include "runtime/compilation.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;

// A model of one subgraph, built operand by operand.
class GraphBuilder {
 public:
  GraphBuilder() { model_->subgraphs.resize(1); }

  uint32_t tensor(OperandType type, graph::Dimensions dimensions, graph::Lifetime lifetime) {
    graph::Subgraph& main = model_->main();
    const auto index = static_cast<uint32_t>(main.operands.size());
    graph::Operand& operand = main.operands.emplace_back();
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = lifetime;
    if (lifetime == graph::Lifetime::kSubgraphInput) main.inputs.push_back(index);
    if (lifetime == graph::Lifetime::kSubgraphOutput) main.outputs.push_back(index);
    return index;
  }
  uint32_t int32(int32_t value) {
    const uint32_t index = tensor(OperandType::kInt32, {}, graph::Lifetime::kConstantCopy);
    model_->main().operands[index].location = {0, model_->constantBytes.size(), sizeof value};
    model_->constantBytes.resize(model_->constantBytes.size() + 8);
    std::memcpy(model_->constantBytes.data() + model_->constantBytes.size() - 8, &value,
                sizeof value);
    return index;
  }
  std::shared_ptr<const graph::Model> finish(OperationType type, std::vector<uint32_t> inputs,
                                             std::vector<uint32_t> outputs) {
    model_->main().operations.push_back({type, std::move(inputs), std::move(outputs), ""});
    return model_;
  }

 private:
  std::shared_ptr<graph::Model> model_ = std::make_shared<graph::Model>();
};

class ExecutionTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Execution> execution(const std::shared_ptr<const graph::Model>& model) const {
    CompilationOptions options;
    options.devices = {devices_.find(GetParam())};
    const auto compilation = Compilation::create(model, {}, options, devices_);
    EXPECT_TRUE(compilation) << compilation.error().toString();
    if (!compilation) return nullptr;
    auto made = Execution::create(*compilation);
    EXPECT_TRUE(made);
    return made ? *made : nullptr;
  }

  template <typename T>
  static hal::Argument argument(const std::vector<T>& values) {
    hal::Argument made;
    made.kind = hal::Argument::Kind::kPointer;
    made.pointer = const_cast<T*>(values.data());
    made.length = values.size() * sizeof(T);
    return made;
  }

  const DeviceManager devices_{{cpu::createCpuDevice(), drivers::reference::createDevice()}};
};

INSTANTIATE_TEST_SUITE_P(Devices, ExecutionTest, testing::Values("hearth-cpu", "nnapi-reference"));

// The reported shapes of all outputs are right, whichever buffers are too small.
TEST_P(ExecutionTest, OutputShapesAreTrueWhateverIsTooSmall) {
  for (const graph::Dimensions& open : {graph::Dimensions{0}, graph::Dimensions{}}) {
    GraphBuilder builder;
    const uint32_t input =
        builder.tensor(OperandType::kTensorFloat32, {4}, graph::Lifetime::kSubgraphInput);
    const uint32_t values =
        builder.tensor(OperandType::kTensorFloat32, open, graph::Lifetime::kSubgraphOutput);
    const uint32_t indices =
        builder.tensor(OperandType::kTensorInt32, open, graph::Lifetime::kSubgraphOutput);
    const auto made = execution(
        builder.finish(OperationType::kTopkV2, {input, builder.int32(2)}, {values, indices}));
    ASSERT_NE(made, nullptr);
    const std::vector<float> numbers = {3, 9, 1, 7};
    ASSERT_TRUE(made->setInput(0, argument(numbers)));
    for (const size_t first : {1, 2, 5}) {
      for (const size_t second : {1, 2, 5}) {
        SCOPED_TRACE(testing::Message() << first << " and " << second << " elements");
        std::vector<float> largest(first);
        std::vector<int32_t> places(second);
        ASSERT_TRUE(made->setOutput(0, argument(largest)));
        ASSERT_TRUE(made->setOutput(1, argument(places)));
        const Status status = made->compute(base::Deadline());
        EXPECT_EQ(status.has_value(), first >= 2 && second >= 2);
        if (!status) {
          EXPECT_EQ(status.error().code(), ErrorCode::kOutputInsufficientSize);
        }
        for (const size_t output : {0, 1}) {
          const auto shape = made->outputShape(output);
          ASSERT_TRUE(shape);
          EXPECT_EQ(*shape, graph::Dimensions{2});
        }
      }
    }
  }
}

// As through NNAPI, such a model compiles, and its execution fails.
TEST_P(ExecutionTest, DeclaredShapesThatConflictAreFailedOperations) {
  for (const uint32_t declared : {1, 3}) {
    GraphBuilder builder;
    const uint32_t input =
        builder.tensor(OperandType::kTensorFloat32, {2}, graph::Lifetime::kSubgraphInput);
    const uint32_t output =
        builder.tensor(OperandType::kTensorFloat32, {declared}, graph::Lifetime::kSubgraphOutput);
    const auto made =
        execution(builder.finish(OperationType::kAdd, {input, input, builder.int32(0)}, {output}));
    ASSERT_NE(made, nullptr);
    const std::vector<float> numbers = {1, 2};
    const std::vector<float> sums(declared);
    ASSERT_TRUE(made->setInput(0, argument(numbers)));
    ASSERT_TRUE(made->setOutput(0, argument(sums)));
    const Status status = made->compute(base::Deadline());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kOpFailed);
    EXPECT_THAT(status.error().toString(), testing::HasSubstr("its inputs give [2]"));
  }
}

// The reference, as a faster device that supports additions only.
class Adder final : public hal::ForwardingDevice {
 public:
  Adder() : ForwardingDevice(drivers::reference::createDevice()) {}
  std::string name() const override { return "adder"; }
  hal::DeviceType type() const override { return hal::DeviceType::kAccelerator; }
  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    capabilities.operandPerformance[OperandType::kTensorFloat32] = {0.1f, 0.1f};
    return capabilities;
  }
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    std::vector<hal::OperationSupport> support;
    for (const graph::Operation& operation : model.main().operations)
      support.push_back({operation.type == OperationType::kAdd, "", ""});
    return support;
  }
};

// y = relu(x + state), state += x. Two devices compute parts of the model and share its state.
TEST(DividedExecutionTest, StateGoesFromDeviceToDevice) {
  using enum graph::Lifetime;
  GraphBuilder builder;
  const auto tensor = [&](graph::Lifetime lifetime) {
    return builder.tensor(OperandType::kTensorFloat32, {2}, lifetime);
  };
  const uint32_t x = tensor(kSubgraphInput);
  const uint32_t state = tensor(kSubgraphInput);
  const uint32_t y = tensor(kSubgraphOutput);
  const uint32_t next = tensor(kSubgraphOutput);
  builder.finish(OperationType::kAdd, {x, state, builder.int32(0)}, {next});
  const auto model = builder.finish(OperationType::kRelu, {next}, {y});
  const DeviceManager manager({std::make_shared<Adder>(), drivers::reference::createDevice()});
  const auto compilation = Compilation::create(model, {{1, 1, {}}}, {}, manager);
  ASSERT_TRUE(compilation) << compilation.error().toString();
  EXPECT_EQ((*compilation)->deviceNames(), "adder, nnapi-reference");
  const auto run = *Execution::create(*compilation);
  const std::vector<float> input = {1, -2};
  std::vector<float> output(2);
  const auto argument = [](const std::vector<float>& values) {
    hal::Argument made;
    made.kind = hal::Argument::Kind::kPointer;
    made.pointer = const_cast<float*>(values.data());
    made.length = values.size() * sizeof(float);
    return made;
  };
  ASSERT_TRUE(run->setInput(0, argument(input)));
  ASSERT_TRUE(run->setOutput(0, argument(output)));
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(run->compute({}));
    EXPECT_THAT(output, testing::ElementsAre(static_cast<float>(i), 0.0f));
  }
  ASSERT_TRUE(run->resetState());
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(output[0], 1.0f);
}

}  // namespace
}  // namespace hearth::runtime
