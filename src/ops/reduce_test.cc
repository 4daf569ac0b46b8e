// SPDX-License-Identifier: Apache-2.0
// MEAN, the REDUCE_ operations, ARGMAX and ARGMIN, TOPK_V2.
#include "ops/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

OperationBuilder reduce(OperationType type, std::vector<int32_t> axes, bool keep) {
  OperationBuilder builder(type);
  builder.input({2, 3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const uint32_t count = static_cast<uint32_t>(axes.size());
  builder.input({count}, std::move(axes));
  if (type == OperationType::kMean)
    builder.scalar(keep ? 1 : 0);
  else
    builder.scalar(keep);
  builder.output();
  return builder;
}

TEST(ReduceTest, AnyAxes) {
  OperationBuilder middle = reduce(OperationType::kReduceSum, {1}, false);
  ASSERT_TRUE(middle.run());
  EXPECT_EQ(middle.dimensions(), (Dimensions{2, 2}));
  EXPECT_THAT(middle.result<float>(), ElementsAre(9, 12, 27, 30));
  OperationBuilder outer = reduce(OperationType::kReduceMax, {0, -1, 0}, true);
  ASSERT_TRUE(outer.run());
  EXPECT_EQ(outer.dimensions(), (Dimensions{1, 3, 1}));
  EXPECT_THAT(outer.result<float>(), ElementsAre(8, 10, 12));
  OperationBuilder all = reduce(OperationType::kReduceMin, {0, 1, 2}, false);
  ASSERT_TRUE(all.run());
  EXPECT_EQ(all.dimensions(), (Dimensions{1}));
  EXPECT_THAT(all.result<float>(), ElementsAre(1));
  OperationBuilder product = reduce(OperationType::kReduceProd, {0, 2}, false);
  ASSERT_TRUE(product.run());
  EXPECT_THAT(product.result<float>(), ElementsAre(112, 1080, 3960));
  OperationBuilder mean = reduce(OperationType::kMean, {1, 2}, true);
  ASSERT_TRUE(mean.run());
  EXPECT_EQ(mean.dimensions(), (Dimensions{2, 1, 1}));
  EXPECT_THAT(mean.result<float>(), ElementsAre(3.5f, 9.5f));
}

TEST(ReduceTest, RefusesAxesOutside) {
  for (const int32_t axis : {3, -4, INT32_MAX, INT32_MIN})
    EXPECT_FALSE(reduce(OperationType::kMean, {axis}, false).run());
}

TEST(ReduceTest, RefusesAxesThatAreNoList) {
  OperationBuilder builder(OperationType::kReduceSum);
  builder.input({2, 3}, std::vector<float>(6)).input({1, 1}, std::vector<int32_t>{0});
  builder.scalar(false).output();
  EXPECT_FALSE(builder.run());
}

TEST(ReduceTest, MeanOfQuantizedChangesScale) {
  OperationBuilder builder(OperationType::kMean);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {1, 4}, 0.5f, -10),
             std::vector<int8_t>{-10, -8, 0, 10})
      .input({1}, std::vector<int32_t>{1})
      .scalar(0)
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {}, 0.25f, 2));
  ASSERT_TRUE(builder.run());
  // (0 + 1 + 5 + 10) / 4 = 4
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(18));
}

TEST(ReduceTest, IntegersAndTruth) {
  OperationBuilder sum(OperationType::kReduceSum);
  sum.input({2, 2}, std::vector<int32_t>{INT32_MAX, 1, 2, 3})
      .input({1}, std::vector<int32_t>{1})
      .scalar(false)
      .output(OperandType::kTensorInt32);
  ASSERT_TRUE(sum.run());
  EXPECT_THAT(sum.result<int32_t>(), ElementsAre(INT32_MIN, 5));
  for (const auto& [type, expected] :
       {std::pair(OperationType::kReduceAll, std::vector<uint8_t>{0, 1}),
        std::pair(OperationType::kReduceAny, std::vector<uint8_t>{1, 1})}) {
    OperationBuilder builder(type);
    builder
        .input(OperationBuilder::tensor(OperandType::kTensorBool8, {2, 2}),
               std::vector<uint8_t>{1, 0, 1, 1})
        .input({1}, std::vector<int32_t>{1})
        .scalar(false)
        .output(OperandType::kTensorBool8);
    ASSERT_TRUE(builder.run());
    EXPECT_EQ(builder.result<uint8_t>(), expected);
  }
}

TEST(ReduceTest, EmptyInputs) {
  OperationBuilder builder(OperationType::kReduceSum);
  builder.input({0, 2}, std::vector<float>{}).input({1}, std::vector<int32_t>{0}).scalar(false);
  builder.output();
  ASSERT_TRUE(builder.inputShapesAreKnown().run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(0, 0));
}

template <typename Index>
std::vector<Index> argument(OperationType type, Dimensions dimensions, std::vector<float> values,
                            int32_t axis) {
  OperationBuilder builder(type);
  builder.input(std::move(dimensions), std::move(values))
      .scalar(axis)
      .output(sizeof(Index) == 8 ? OperandType::kTensorInt64 : OperandType::kTensorInt32);
  EXPECT_TRUE(builder.run());
  return builder.result<Index>();
}

TEST(ArgmaxTest, FirstOfEqualOnesWins) {
  const std::vector<float> values = {1, 3, 3, 0, 5, -1};
  EXPECT_THAT(argument<int32_t>(OperationType::kArgmax, {2, 3}, values, -1), ElementsAre(1, 1));
  EXPECT_THAT(argument<int32_t>(OperationType::kArgmin, {2, 3}, values, 0), ElementsAre(1, 0, 1));
  EXPECT_THAT(argument<int64_t>(OperationType::kArgmax64, {2, 3}, values, 0), ElementsAre(0, 1, 0));
  EXPECT_THAT(argument<int64_t>(OperationType::kArgmin64, {2, 3}, values, 1), ElementsAre(0, 2));
  EXPECT_THAT(argument<int32_t>(OperationType::kArgmax, {3}, {NAN, 1, 2}, 0), ElementsAre(0));
}

TEST(ArgmaxTest, EightBitRows) {
  std::vector<uint8_t> values(2 * 37, 7);
  values[20] = 9;
  values[30] = 9;
  values[37 + 36] = 200;
  OperationBuilder builder(OperationType::kArgmax);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, {2, 37}, 1.0f, 0),
             std::move(values))
      .scalar(1)
      .output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(20, 36));
}

TEST(ArgmaxTest, RefusesAxesOutsideAndEmptyOnes) {
  for (const int32_t axis : {1, -2, INT32_MIN}) {
    OperationBuilder builder(OperationType::kArgmax);
    builder.input({2}, std::vector<float>{1, 2}).scalar(axis).output(OperandType::kTensorInt32);
    EXPECT_FALSE(builder.run());
  }
  OperationBuilder empty(OperationType::kArgmax);
  empty.input({2, 0}, std::vector<float>{}).scalar(1).output(OperandType::kTensorInt32);
  EXPECT_FALSE(empty.inputShapesAreKnown().run());
}

TEST(TopkTest, LargestFirstThenByIndex) {
  OperationBuilder builder(OperationType::kTopkV2);
  builder.input({2, 4}, std::vector<float>{1, 3, 3, 2, NAN, -1, NAN, -2}).scalar(3);
  builder.output().output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(1), (Dimensions{2, 3}));
  EXPECT_THAT(builder.result<int32_t>(1), ElementsAre(1, 2, 3, 1, 3, 0));
  for (const int32_t k : {0, -1, 5}) {
    OperationBuilder wrong(OperationType::kTopkV2);
    wrong.input({2, 4}, std::vector<float>(8)).scalar(k);
    wrong.output().output(OperandType::kTensorInt32);
    EXPECT_FALSE(wrong.run());
  }
}

}  // namespace
}  // namespace hearth::ops
