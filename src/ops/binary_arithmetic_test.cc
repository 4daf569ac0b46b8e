// SPDX-License-Identifier: Apache-2.0
#include "ops/binary_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

std::vector<int32_t> integers(OperationType type, std::vector<int32_t> a, std::vector<int32_t> b,
                              bool hasActivation = true) {
  OperationBuilder builder(type);
  const Dimensions dimensions = {static_cast<uint32_t>(a.size())};
  builder.input(dimensions, std::move(a)).input(dimensions, std::move(b));
  if (hasActivation) builder.scalar(0);
  builder.output(OperandType::kTensorInt32);
  const Status status = builder.run();
  EXPECT_TRUE(status);
  return status ? builder.result<int32_t>() : std::vector<int32_t>();
}

TEST(BinaryArithmeticTest, BroadcastsBothSides) {
  OperationBuilder builder(OperationType::kAdd);
  builder.input({2, 1}, std::vector<float>{10, 20})
      .input({3}, std::vector<float>{1, 2, 3})
      .scalar(0)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 3}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(BinaryArithmeticTest, BroadcastsInTheMiddleOfRankFive) {
  OperationBuilder builder(OperationType::kSub);
  builder.input({2, 1, 1, 2, 1}, std::vector<float>{1, 2, 3, 4})
      .input({1, 1, 2, 1, 1}, std::vector<float>{0, 10})
      .scalar(0)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1, 2, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, -9, -8, 3, 4, -7, -6));
}

TEST(BinaryArithmeticTest, FusedActivation) {
  OperationBuilder builder(OperationType::kMul);
  builder.input({3}, std::vector<float>{-3, 0.5f, 2})
      .input({1}, std::vector<float>{2})
      .scalar(2)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(-1, 1, 1));
}

TEST(BinaryArithmeticTest, EachOperandHasItsOwnScale) {
  OperationBuilder builder(OperationType::kAdd);
  builder.input(OperationBuilder::tensor(kUint8, {3}, 0.5f, 128), std::vector<uint8_t>{130, 0, 255})
      .input(OperationBuilder::tensor(kUint8, {3}, 2.0f, 0), std::vector<uint8_t>{3, 0, 255})
      .scalar(0)
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f, 10));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(17, 0, 255));
}

TEST(BinaryArithmeticTest, SignedProduct) {
  OperationBuilder builder(OperationType::kMul);
  builder.input(OperationBuilder::tensor(kInt8, {2}, 1.0f, -128), std::vector<int8_t>{-126, 127})
      .input(OperationBuilder::tensor(kInt8, {2}, 0.5f, 0), std::vector<int8_t>{-7, 127})
      .scalar(0)
      .output(OperationBuilder::tensor(kInt8, {}, 1.0f, 0));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-7, 127));
}

TEST(BinaryArithmeticTest, IntegersWrap) {
  EXPECT_THAT(integers(OperationType::kAdd, {INT32_MAX, 2}, {1, 3}), ElementsAre(INT32_MIN, 5));
  EXPECT_THAT(integers(OperationType::kSub, {INT32_MIN, 2}, {1, 3}), ElementsAre(INT32_MAX, -1));
  EXPECT_THAT(integers(OperationType::kMul, {INT32_MIN, 1 << 20}, {-1, 1 << 12}),
              ElementsAre(INT32_MIN, 0));
}

TEST(BinaryArithmeticTest, IntegerDivisionIsDefinedEverywhere) {
  EXPECT_THAT(
      integers(OperationType::kDiv, {7, -7, 7, -7, 5, INT32_MIN, 0}, {2, 2, -2, -2, 0, -1, 0}),
      ElementsAre(3, -4, -4, 3, 0, INT32_MIN, 0));
}

TEST(BinaryArithmeticTest, MaximumMinimumOfIntegers) {
  EXPECT_THAT(integers(OperationType::kMaximum, {1, -5}, {2, -6}, false), ElementsAre(2, -5));
  EXPECT_THAT(integers(OperationType::kMinimum, {1, -5}, {2, -6}, false), ElementsAre(1, -6));
}

TEST(BinaryArithmeticTest, MaximumKeepsNanOfEitherSide) {
  OperationBuilder builder(OperationType::kMaximum);
  builder.input({2}, std::vector<float>{NAN, 1}).input({2}, std::vector<float>{1, NAN}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_TRUE(std::isnan(builder.result<float>()[0]));
  EXPECT_TRUE(std::isnan(builder.result<float>()[1]));
}

TEST(BinaryArithmeticTest, FloatDivisionByZeroFollowsIeee) {
  OperationBuilder builder(OperationType::kDiv);
  builder.input({2}, std::vector<float>{1, -1})
      .input({1}, std::vector<float>{0})
      .scalar(0)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(INFINITY, -INFINITY));
}

TEST(BinaryArithmeticTest, QuantizedDivisionByZeroSaturates) {
  OperationBuilder builder(OperationType::kDiv);
  builder.input(OperationBuilder::tensor(kUint8, {3}, 1.0f, 2), std::vector<uint8_t>{3, 1, 2})
      .input(OperationBuilder::tensor(kUint8, {1}, 1.0f, 2), std::vector<uint8_t>{2})
      .scalar(0)
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f, 2));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(255, 0, 2));
}

TEST(BinaryArithmeticTest, Pow) {
  OperationBuilder builder(OperationType::kPow);
  builder.input({2}, std::vector<float>{2, 9}).input({2}, std::vector<float>{10, 0.5f}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1024, 3));
  EXPECT_THAT(integers(OperationType::kPow, {3, -1, 2, 0, 7, 2}, {4, -3, -1, 0, 1, 40}, false),
              ElementsAre(81, -1, 0, 1, 7, 0));
}

TEST(BinaryArithmeticTest, EmptyInputGivesEmptyOutput) {
  OperationBuilder builder(OperationType::kAdd);
  builder.input({0, 2}, std::vector<float>{})
      .input({1, 2}, std::vector<float>{1, 2})
      .scalar(0)
      .output();
  builder.inputShapesAreKnown();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{0, 2}));
}

TEST(BinaryArithmeticTest, RanksOfAnySize) {
  for (const size_t rank : {8, 9, 33, 100}) {
    Dimensions shape(rank, 1);
    shape.front() = 2;
    shape.back() = 3;
    OperationBuilder add(OperationType::kAdd);
    add.input(shape, std::vector<float>{1, 2, 3, 4, 5, 6})
        .input({3}, std::vector<float>{10, 20, 30})
        .scalar(0)
        .output();
    ASSERT_TRUE(add.run());
    EXPECT_EQ(add.dimensions(), shape);
    EXPECT_EQ(add.result<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  }
}

TEST(BinaryArithmeticTest, BadArguments) {
  OperationBuilder shapes(OperationType::kAdd);
  shapes.input({2}, std::vector<float>(2)).input({3}, std::vector<float>(3)).scalar(0).output();
  EXPECT_FALSE(shapes.run());
  OperationBuilder types(OperationType::kAdd);
  types.input({2}, std::vector<float>(2)).input({2}, std::vector<int32_t>(2)).scalar(0).output();
  EXPECT_FALSE(types.validate());
  OperationBuilder activation(OperationType::kAdd);
  activation.input({1}, std::vector<float>(1)).input({1}, std::vector<float>(1)).scalar(7).output();
  EXPECT_FALSE(activation.run());
  OperationBuilder count(OperationType::kMaximum);
  count.input({1}, std::vector<float>(1)).input({1}, std::vector<float>(1)).scalar(0).output();
  EXPECT_FALSE(count.validate());
}

TEST(SquaredDifferenceTest, RealNumbersAndIntegers) {
  OperationBuilder builder(OperationType::kSquaredDifference);
  builder.input({2, 1}, std::vector<float>{1, 5}).input({2}, std::vector<float>{2, -1}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 4, 9, 36));
  EXPECT_THAT(
      integers(OperationType::kSquaredDifference, {3, INT32_MIN, 65536}, {5, INT32_MAX, 0}, false),
      ElementsAre(4, 1, 0));
}

// Each result is the nearest step: the difference is not rounded before it is squared.
TEST(SquaredDifferenceTest, EightBits) {
  std::vector<int8_t> a;
  std::vector<int8_t> b;
  for (int x = -128; x < 128; x += 5)
    for (int y = -128; y < 128; y += 3) {
      a.push_back(static_cast<int8_t>(x));
      b.push_back(static_cast<int8_t>(y));
    }
  const auto count = static_cast<uint32_t>(a.size());
  OperationBuilder builder(OperationType::kSquaredDifference);
  builder.input(OperationBuilder::tensor(kInt8, {count}, 0.031f, 11), a)
      .input(OperationBuilder::tensor(kInt8, {count}, 0.027f, -20), b)
      .output(OperationBuilder::tensor(kInt8, {}, 0.13f, -128));
  ASSERT_TRUE(builder.run());
  const std::vector<int8_t> results = builder.result<int8_t>();
  for (size_t i = 0; i < count; ++i) {
    const double difference = (a[i] - 11) * double{0.031f} - (b[i] + 20) * double{0.027f};
    const double step = difference * difference / double{0.13f} - 128;
    EXPECT_NEAR(results[i], std::clamp(step, -128.0, 127.0), 0.5001) << i;
  }
}

// The scale of the output suits squares of small differences.
TEST(SquaredDifferenceTest, SixteenBits) {
  OperationBuilder builder(OperationType::kSquaredDifference);
  const auto tensor = [](float scale) {
    return OperationBuilder::tensor(OperandType::kTensorQuant16Symm, {3}, scale);
  };
  builder.input(tensor(0.001f), std::vector<int16_t>{20000, -3, 32767})
      .input(tensor(0.001f), std::vector<int16_t>{20010, 4, -32768})
      .output(tensor(1e-7f));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int16_t>(), ElementsAre(1000, 490, 32767));
}

TEST(SquaredDifferenceTest, ScalesThatAreFarApart) {
  OperationBuilder builder(OperationType::kSquaredDifference);
  builder.input(OperationBuilder::tensor(kInt8, {2}, 1e30f, 0), std::vector<int8_t>{1, 127})
      .input(OperationBuilder::tensor(kInt8, {2}, 1e30f, 0), std::vector<int8_t>{1, -128})
      .output(OperationBuilder::tensor(kInt8, {}, 1e-30f, 3));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(3, 127));
}

// Integers without a scale have steps of 1; sums that are too large saturate.
TEST(BinaryArithmeticTest, PlainIntegersOfSixteenBits) {
  const auto run = [](OperationType type, std::vector<int16_t> a, std::vector<int16_t> b) {
    graph::Operand operand;
    operand.type = OperandType::kTensorInt16;
    operand.dimensions = {static_cast<uint32_t>(a.size())};
    OperationBuilder builder(type);
    builder.input(operand, std::move(a)).input(operand, std::move(b)).scalar(0).output(operand);
    EXPECT_TRUE(builder.run());
    return builder.result<int16_t>();
  };
  EXPECT_THAT(run(OperationType::kAdd, {1, -7, 32767}, {2, 5, 3}), ElementsAre(3, -2, 32767));
  EXPECT_THAT(run(OperationType::kMul, {3, -7, 200}, {2, 5, -200}), ElementsAre(6, -35, -32768));
}

}  // namespace
}  // namespace hearth::ops
