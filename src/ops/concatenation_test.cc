// SPDX-License-Identifier: Apache-2.0
// CONCATENATION, PACK, SPLIT and TRANSPOSE.
#include "ops/concatenation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

TEST(ConcatenationTest, JoinsAlongAnyAxis) {
  OperationBuilder builder(OperationType::kConcatenation);
  builder.input({2, 1}, std::vector<float>{1, 2})
      .input({2, 2}, std::vector<float>{3, 4, 5, 6})
      .scalar(-1)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 3}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(ConcatenationTest, BringsInputsToTheOutputScale) {
  const OperandType type = OperandType::kTensorQuant8AsymmSigned;
  OperationBuilder builder(OperationType::kConcatenation);
  builder.input(OperationBuilder::tensor(type, {2}, 0.5f, 0), std::vector<int8_t>{-3, 127})
      .input(OperationBuilder::tensor(type, {2}, 0.25f, 4), std::vector<int8_t>{-128, 5})
      .scalar(0)
      .output(OperationBuilder::tensor(type, {}, 0.25f, 4));
  ASSERT_TRUE(builder.run());
  // -1.5 and 63.5, which saturates; the second input is copied.
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-2, 127, -128, 5));
}

// The quotient of the scales is infinite, or its product with a value is.
TEST(ConcatenationTest, ScalesFarApart) {
  const OperandType type = OperandType::kTensorQuant8Asymm;
  for (const float scale : {1e30f, 1.0f}) {
    OperationBuilder builder(OperationType::kConcatenation);
    builder
        .input(OperationBuilder::tensor(type, {4}, scale, 128),
               std::vector<uint8_t>{0, 127, 128, 129})
        .input(OperationBuilder::tensor(type, {2}, scale, 0), std::vector<uint8_t>{0, 1})
        .scalar(0)
        .output(OperationBuilder::tensor(type, {}, 1e-38f, 7));
    ASSERT_TRUE(builder.run());
    EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(0, 0, 7, 255, 7, 255));
  }
}

TEST(ConcatenationTest, ManyDimensions) {
  OperationBuilder builder(OperationType::kConcatenation);
  builder.input({2, 1, 1, 1, 2}, std::vector<float>{1, 2, 3, 4})
      .input({2, 1, 1, 1, 1}, std::vector<float>{5, 6})
      .scalar(-1)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1, 1, 1, 3}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST(ConcatenationTest, RefusesWhatDoesNotFit) {
  OperationBuilder shapes(OperationType::kConcatenation);
  shapes.input({2, 1}, std::vector<float>{1, 2})
      .input({1, 2}, std::vector<float>{3, 4})
      .scalar(1)
      .output();
  EXPECT_FALSE(shapes.run());
  OperationBuilder axis(OperationType::kConcatenation);
  axis.input({2}, std::vector<float>{1, 2}).scalar(1).output();
  EXPECT_FALSE(axis.run());
  OperationBuilder types(OperationType::kConcatenation);
  types.input({1}, std::vector<float>{1}).input({1}, std::vector<int32_t>{1}).scalar(0).output();
  EXPECT_FALSE(types.validate());
}

TEST(ConcatenationTest, PacksAlongANewAxis) {
  for (const auto& [axis, shape, values] :
       {std::tuple(0, Dimensions{2, 3}, std::vector<int32_t>{1, 2, 3, 4, 5, 6}),
        std::tuple(1, Dimensions{3, 2}, std::vector<int32_t>{1, 4, 2, 5, 3, 6})}) {
    OperationBuilder builder(OperationType::kPack);
    builder.scalar(axis)
        .input({3}, std::vector<int32_t>{1, 2, 3})
        .input({3}, std::vector<int32_t>{4, 5, 6})
        .output(OperandType::kTensorInt32);
    ASSERT_TRUE(builder.run());
    EXPECT_EQ(builder.dimensions(), shape);
    EXPECT_EQ(builder.result<int32_t>(), values);
  }
  OperationBuilder builder(OperationType::kPack);
  builder.scalar(2).input({3}, std::vector<int32_t>{1, 2, 3}).output(OperandType::kTensorInt32);
  EXPECT_FALSE(builder.run());
}

TEST(ConcatenationTest, SplitsEvenly) {
  OperationBuilder builder(OperationType::kSplit);
  builder.input({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}).scalar(1).scalar(2);
  builder.output().output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(builder.result<float>(1), ElementsAre(3, 4, 7, 8));
}

TEST(ConcatenationTest, RefusesUnevenSplits) {
  for (const auto& [axis, count] :
       {std::pair(1, 3), std::pair(0, 0), std::pair(2, 3), std::pair(1, 2)}) {
    OperationBuilder builder(OperationType::kSplit);
    builder.input({2, 4}, std::vector<float>(8)).scalar(axis).scalar(count);
    builder.output().output().output();
    EXPECT_FALSE(builder.run()) << axis << " " << count;
  }
}

TEST(ConcatenationTest, Transposes) {
  OperationBuilder builder(OperationType::kTranspose);
  builder.input({2, 1, 3}, std::vector<int32_t>{1, 2, 3, 4, 5, 6})
      .input({3}, std::vector<int32_t>{2, 0, 1})
      .output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{3, 2, 1}));
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  for (const std::vector<int32_t>& order : {std::vector<int32_t>{0, 0, 1}, {0, 1}, {0, 1, 3}}) {
    OperationBuilder wrong(OperationType::kTranspose);
    wrong.input({2, 1, 3}, std::vector<int32_t>(6))
        .input({static_cast<uint32_t>(order.size())}, order)
        .output(OperandType::kTensorInt32);
    EXPECT_FALSE(wrong.run());
  }
}

TEST(ConcatenationTest, TransposesWithoutAnOrderReverseTheDimensions) {
  OperationBuilder builder(OperationType::kTranspose);
  builder.input({2, 1, 3}, std::vector<int32_t>{1, 2, 3, 4, 5, 6}).omitted(kInt32).output(kInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{3, 1, 2}));
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
}

}  // namespace
}  // namespace hearth::ops
