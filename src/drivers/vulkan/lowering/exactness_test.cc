// SPDX-License-Identifier: Apache-2.0
// Quantised results are those of the reference kernels to the last bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "drivers/vulkan/testing/validated_device.h"
#include "hal/cts/model_builder.h"
#include "hal/device.h"
#include "hal/interpreted_model.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

class ExactnessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = createValidatedDevice();
    if (!device && device.error().code() == ErrorCode::kUnsupported)
      GTEST_SKIP() << device.error().toString();
    ASSERT_TRUE(device) << device.error().toString();
    device_ = *std::move(device);
  }

  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random_());
    return values;
  }
  // Decimal scales: sums meet ties between two steps exactly.
  float scale() { return static_cast<float>(random_() % 40 + 1) * 0.05f; }
  int32_t zeroPoint(OperandType type) {
    const auto value = static_cast<int32_t>(random_() % 256);
    return type == OperandType::kTensorQuant8AsymmSigned ? value - 128 : value;
  }

  // The output of a model of 8-bit tensors for these inputs.
  static std::vector<uint8_t> compute(hal::PreparedModel& prepared, const graph::Model& model,
                                      std::vector<std::vector<uint8_t>> inputs) {
    const graph::Subgraph& main = model.main();
    std::vector<uint8_t> result(*graph::byteSize(main.operands[main.outputs[0]]));
    hal::Request request;
    const auto argumentOf = [](std::vector<uint8_t>& values) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = values.data();
      argument.length = values.size();
      return argument;
    };
    for (std::vector<uint8_t>& input : inputs) request.inputs.push_back(argumentOf(input));
    request.outputs.push_back(argumentOf(result));
    const auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult computed = (*execution)->compute({});
    EXPECT_TRUE(computed.status) << computed.status.error().toString();
    return result;
  }

  void expectReference(const ModelBuilder& builder,
                       const std::vector<std::vector<uint8_t>>& inputs) {
    const auto model = std::make_shared<const graph::Model>(builder.model());
    const auto reference =
        hal::prepareInterpreted(model, {}, nullptr, "", nullptr, ops::KernelSet::kReference);
    ASSERT_TRUE(reference) << reference.error().toString();
    const auto prepared = device_->prepareModel(model, {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    EXPECT_EQ(compute(**prepared, *model, inputs), compute(**reference, *model, inputs));
  }

  std::mt19937 random_{41};
  std::shared_ptr<hal::Device> device_;
};

constexpr OperandType kTypes[] = {OperandType::kTensorQuant8Asymm,
                                  OperandType::kTensorQuant8AsymmSigned};

TEST_F(ExactnessTest, SumsOfProductsAreRoundedAsTheReferenceRoundsThem) {
  for (int round = 0; round < 40; ++round) {
    const OperandType type = kTypes[round % 2];
    constexpr uint32_t kRows = 64, kDepth = 5, kUnits = 40;
    const float data = scale();
    const float weight = scale();
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {kRows, kDepth}, data, zeroPoint(type));
    const uint32_t weights =
        builder.constant(type, {kUnits, kDepth}, bytes(kUnits * kDepth), weight, zeroPoint(type));
    std::vector<int32_t> biases(kUnits);
    for (int32_t& bias : biases) bias = static_cast<int32_t>(random_() % 20001) - 10000;
    const uint32_t bias =
        builder.constant(OperandType::kTensorInt32, {kUnits}, biases, data * weight);
    const uint32_t activation = builder.scalar(int32_t{0});
    // Few sums saturate.
    const uint32_t output =
        builder.output(type, {kRows, kUnits}, data * weight * 997.0f, zeroPoint(type));
    builder.operation(OperationType::kFullyConnected, {input, weights, bias, activation}, {output});
    expectReference(builder, {bytes(kRows * kDepth)});
  }
}

TEST_F(ExactnessTest, SumsOfTwoTensorsAreThoseOfTheReference) {
  for (int round = 0; round < 10; ++round) {
    const OperandType type = kTypes[round % 2];
    ModelBuilder builder;
    const uint32_t left = builder.input(type, {64, 32}, scale(), zeroPoint(type));
    const uint32_t right = builder.input(type, {32}, scale(), zeroPoint(type));
    const uint32_t activation = builder.scalar(round % 4);
    const uint32_t output = builder.output(type, {64, 32}, scale(), zeroPoint(type));
    builder.operation(OperationType::kAdd, {left, right, activation}, {output});
    expectReference(builder, {bytes(64 * 32), bytes(32)});
  }
}

TEST_F(ExactnessTest, MeansOfWindowsAreThoseOfTheReference) {
  for (int round = 0; round < 10; ++round) {
    const OperandType type = kTypes[round % 2];
    const float step = scale();
    const int32_t zero = zeroPoint(type);
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {1, 9, 11, 5}, step, zero);
    const uint32_t same = builder.scalar(int32_t{1});
    const uint32_t stride = builder.scalar(int32_t{1});
    const uint32_t width = builder.scalar(round % 3 + 2);
    const uint32_t height = builder.scalar(round % 4 + 1);
    const uint32_t activation = builder.scalar(round % 4);
    const uint32_t output = builder.output(type, {1, 9, 11, 5}, step, zero);
    builder.operation(OperationType::kAveragePool2d,
                      {input, same, stride, stride, width, height, activation}, {output});
    expectReference(builder, {bytes(9 * 11 * 5)});
  }
}

}  // namespace
}  // namespace hearth::vulkan
