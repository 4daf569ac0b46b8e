// SPDX-License-Identifier: Apache-2.0
#include "ops/fully_connected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

OperationBuilder layer(Dimensions input, Dimensions weights, Dimensions output = {}) {
  uint64_t size = 1;
  for (uint32_t d : input) size *= d;
  uint64_t weightsSize = 1;
  for (uint32_t d : weights) weightsSize *= d;
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i + 1);
  OperationBuilder builder(OperationType::kFullyConnected);
  builder.input(std::move(input), values)
      .input(std::move(weights), std::vector<float>(weightsSize, 1.0f))
      .omitted(kFloat)
      .scalar(0)
      .output(OperationBuilder::tensor(kFloat, std::move(output)));
  return builder;
}

TEST(FullyConnectedTest, FlattensTheInput) {
  OperationBuilder builder = layer({2, 1, 3}, {2, 3});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 2}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(6, 6, 15, 15));
}

TEST(FullyConnectedTest, FlattensAcrossDimensions) {
  OperationBuilder builder = layer({2, 2, 1}, {1, 4});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(10));
}

TEST(FullyConnectedTest, KeepsDimensionsThatTheOutputDeclares) {
  OperationBuilder builder = layer({2, 1, 3}, {2, 3}, {2, 1, 2});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1, 2}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(6, 6, 15, 15));
  OperationBuilder unknown = layer({2, 1, 3}, {2, 3}, {0, 0, 0});
  ASSERT_TRUE(unknown.run());
  EXPECT_EQ(unknown.dimensions(), (Dimensions{2, 1, 2}));
}

TEST(FullyConnectedTest, SignedWithOmittedBias) {
  OperationBuilder builder(OperationType::kFullyConnected);
  builder.input(OperationBuilder::tensor(kInt8, {1, 2}, 0.5f, -1), std::vector<int8_t>{1, 3})
      .input(OperationBuilder::tensor(kInt8, {2, 2}, 0.5f), std::vector<int8_t>{2, 4, -128, 0})
      .omitted(OperandType::kTensorInt32)
      .scalar(0)
      .output(OperationBuilder::tensor(kInt8, {}, 1.0f, 5));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(10, -59));
}

TEST(FullyConnectedTest, HybridWeights) {
  OperationBuilder builder(OperationType::kFullyConnected);
  // The rows are rounded to steps of 1 (from -100 to 155) and of 0.5 (from 0 to 127.5).
  builder.input({2, 3}, std::vector<float>{1.0f, 155.0f, -100.0f, 0.5f, 127.5f, 1.1f})
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8Symm, {1, 3}, 0.25f),
             std::vector<int8_t>{-4, 8, 1})
      .input({1}, std::vector<float>{0.5f})
      .scalar(0)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(284.5f, 255.25f));
}

TEST(FullyConnectedTest, FourBitWeightsWithScalesForRowsOrBlocks) {
  const auto run = [](graph::Operand weights, bool hasBlocks) {
    OperationBuilder builder(OperationType::kFullyConnected);
    builder.input({1, 4}, std::vector<float>{1, 0, 255, 2})
        .input(std::move(weights), std::vector<uint8_t>{0xF1, 0x78, 0x21, 0x43})
        .omitted(kFloat)
        .scalar(0);
    // [2, 4] weights have blocks of half a row.
    if (hasBlocks) builder.input({2, 2}, std::vector<Half>{1, 2, 4, 8});
    builder.output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  graph::Operand weights = OperationBuilder::tensor(OperandType::kTensorInt4, {2, 4});
  // Rows 1, -1, -8, 7 and 1, 2, 3, 4.
  EXPECT_THAT(run(weights, true), ElementsAre(1 + 2 * (-8 * 255 + 14), 4 + 8 * (3 * 255 + 8)));
  weights.perChannel = {.channelDim = 0, .scales = {0.5f, 2.0f}};
  EXPECT_THAT(run(weights, false), ElementsAre(0.5f * (1 - 8 * 255 + 14), 2 * (1 + 765 + 8)));
  weights.perChannel = {};
  OperationBuilder unscaled(OperationType::kFullyConnected);
  unscaled.input({1, 4}, std::vector<float>(4))
      .input(weights, std::vector<uint8_t>(4))
      .omitted(kFloat)
      .scalar(0)
      .output();
  EXPECT_FALSE(unscaled.validate());
}

TEST(FullyConnectedTest, LongRowsStayExact) {
  OperationBuilder builder(OperationType::kFullyConnected);
  constexpr uint32_t kSize = 100'003;
  builder.input({1, kSize}, std::vector<float>(kSize, 0.125f))
      .input({1, kSize}, std::vector<float>(kSize, 1.0f))
      .omitted(kFloat)
      .scalar(0)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(12500.375f));
}

TEST(FullyConnectedTest, BadShapes) {
  EXPECT_FALSE(layer({2, 3}, {2, 4}).run());
  EXPECT_FALSE(layer({2, 3}, {2, 3}, {2, 3}).run());
  EXPECT_FALSE(layer({2, 3}, {2, 3, 1}).validate());
}

}  // namespace
}  // namespace hearth::ops
