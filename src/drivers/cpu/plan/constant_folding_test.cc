// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/constant_folding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// The nodes of a model's execution graph, each with its operation and kernel.
std::vector<std::string> nodesOf(const graph::Model& model) {
  EXPECT_TRUE(initializeXnnpack());
  PackedWeights weights;
  PlanBuilder builder(model, &weights, {});
  const Status built = builder.build();
  EXPECT_TRUE(built) << built.error().toString();
  std::vector<std::string> nodes;
  for (const Node& node : builder.takePlan().nodes) nodes.emplace_back(node.name);
  return nodes;
}

std::vector<_Float16> halvesFor(const Dimensions& dimensions, unsigned seed) {
  std::vector<_Float16> halves;
  for (const float value : randomFloats(countOf(dimensions), seed))
    halves.push_back(static_cast<_Float16>(value));
  return halves;
}

// A float16 constant and what `conversion` makes of it.
uint32_t convertedHalves(ModelBuilder* builder, OperationType conversion,
                         const Dimensions& dimensions, unsigned seed) {
  const uint32_t half =
      builder->constant(OperandType::kTensorFloat16, dimensions, halvesFor(dimensions, seed));
  const uint32_t whole = builder->temporary(kFloat, dimensions);
  builder->operation(conversion, {half}, {whole});
  return whole;
}

uint32_t ints(ModelBuilder* builder, const std::vector<int32_t>& values) {
  return builder->constant(OperandType::kTensorInt32, {static_cast<uint32_t>(values.size())},
                           values);
}

// A filter that is converted, transposed and reshaped, in float32 and int8.
TEST(ConstantFoldingTest, ChainsArePackedByTheirLayer) {
  for (const bool isFloat : {true, false}) {
    ModelBuilder builder;
    const OperandType type = isFloat ? kFloat : kInt8;
    const float scale = isFloat ? 0.0f : 0.03f;
    const uint32_t data = builder.input(type, {5, 24}, scale);
    uint32_t stored = 0;
    if (isFloat)
      stored = convertedHalves(&builder, OperationType::kDequantize, {24, 16}, 2);
    else
      stored = builder.constant(kInt8, {24, 16}, randomBytes(size_t{24} * 16, 2), scale);
    const uint32_t turned = builder.temporary(type, {16, 24}, scale);
    builder.operation(OperationType::kTranspose, {stored, ints(&builder, {1, 0})}, {turned});
    const uint32_t filter = builder.temporary(type, {16, 24}, scale);
    builder.operation(OperationType::kReshape, {turned, ints(&builder, {16, 24})}, {filter});
    const uint32_t bias = isFloat ? builder.constant(kFloat, {16}, randomFloats(16, 3))
                                  : builder.constant(OperandType::kTensorInt32, {16},
                                                     std::vector<int32_t>(16, 300), scale * scale);
    builder.operation(OperationType::kFullyConnected, {data, filter, bias, builder.scalar(0)},
                      {builder.output(type, {5, 16}, isFloat ? 0.0f : 0.3f)});
    EXPECT_EQ(nodesOf(builder.model()), std::vector<std::string>{"FULLY_CONNECTED"});
    const Bytes input = isFloat ? floatsFor({5, 24}, 1) : randomBytes(size_t{5} * 24, 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {input}, nullptr, 1e-5f), "");
  }
}

// Only numbers that stay in memory count against the limit of 128 MiB.
TEST(ConstantFoldingTest, ALargeFilterIsConvertedWhenItIsPacked) {
  constexpr uint32_t kOutputs = 8200;
  constexpr uint32_t kInputs = 4100;
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, {1, kInputs});
  const uint32_t stored = builder.constant(OperandType::kTensorFloat16, {kOutputs, kInputs},
                                           std::vector<_Float16>(size_t{kOutputs} * kInputs));
  const uint32_t filter = builder.temporary(kFloat, {kOutputs, kInputs});
  builder.operation(OperationType::kDequantize, {stored}, {filter});
  const uint32_t bias = builder.constant(kFloat, {kOutputs}, std::vector<float>(kOutputs));
  builder.operation(OperationType::kFullyConnected, {data, filter, bias, builder.scalar(0)},
                    {builder.output(kFloat, {1, kOutputs})});
  // One or, where its parts are packed one by one, several.
  EXPECT_THAT(nodesOf(builder.model()), testing::Each("FULLY_CONNECTED"));
}

// (a + b) * 2 of constants, which the model then adds.
TEST(ConstantFoldingTest, ArithmeticIsComputedWhenTheModelIsPrepared) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, {3, 20});
  const uint32_t a = builder.constant(kFloat, {20}, randomFloats(20, 2));
  const uint32_t b = builder.constant(kFloat, {20}, randomFloats(20, 3));
  const uint32_t two = builder.constant(kFloat, {1}, std::vector<float>{2.0f});
  const uint32_t sum = builder.temporary(kFloat, {20});
  const uint32_t product = builder.temporary(kFloat, {20});
  const uint32_t none = builder.scalar(0);
  builder.operation(OperationType::kAdd, {a, b, none}, {sum});
  builder.operation(OperationType::kMul, {sum, two, none}, {product});
  builder.operation(OperationType::kAdd, {data, product, none}, {builder.output(kFloat, {3, 20})});
  EXPECT_EQ(nodesOf(builder.model()), std::vector<std::string>{"ADD"});
  EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor({3, 20}, 1)}, nullptr, 1e-6f), "");
}

// An index that GATHER refuses is refused when the model runs, as without folding.
TEST(ConstantFoldingTest, WhatCannotBeComputedIsLeftToTheExecution) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, {2});
  const uint32_t table = builder.constant(kFloat, {3}, std::vector<float>{1, 2, 3});
  const uint32_t rows = builder.temporary(kFloat, {2});
  builder.operation(OperationType::kGather, {table, builder.scalar(0), ints(&builder, {1, 7})},
                    {rows});
  builder.operation(OperationType::kAdd, {data, rows, builder.scalar(0)},
                    {builder.output(kFloat, {2})});
  EXPECT_EQ(nodesOf(builder.model()), (std::vector<std::string>{"GATHER", "ADD"}));
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_FALSE(runPrepared(builder.model(), *prepared, {floatsFor({2}, 1)}));
}

// The result of folding is the output of the model.
TEST(ConstantFoldingTest, OutputsAreWrittenInEachExecution) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, {2});
  const uint32_t a = builder.constant(kFloat, {2}, std::vector<float>{1, -2});
  builder.operation(OperationType::kAbs, {a}, {builder.output(kFloat, {2})});
  builder.operation(OperationType::kAbs, {data}, {builder.output(kFloat, {2})});
  EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor({2}, 1)}, nullptr, 0.0f), "");
}

}  // namespace
}  // namespace hearth::cpu
