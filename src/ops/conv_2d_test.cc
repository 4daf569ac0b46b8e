// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 3x3 image 1..9, 2x2 filter of ones.
OperationBuilder ones(std::initializer_list<int32_t> parameters) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 3, 3, 1}, counting(9))
      .input({1, 2, 2, 1}, std::vector<float>(4, 1.0f))
      .input({1}, std::vector<float>{0.5f})
      .scalars(parameters)
      .output();
  return builder;
}

TEST(Conv2dTest, ValidPadding) {
  OperationBuilder builder = ones({2, 1, 1, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(12.5f, 16.5f, 24.5f, 28.5f));
}

TEST(Conv2dTest, SamePaddingPutsTheOddElementAtTheEnd) {
  OperationBuilder builder = ones({1, 1, 1, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(12.5f, 16.5f, 9.5f,   //
                                                   24.5f, 28.5f, 15.5f,  //
                                                   15.5f, 17.5f, 9.5f));
}

TEST(Conv2dTest, ExplicitPaddingIsLeftRightTopBottomAndStrideWidthFirst) {
  OperationBuilder builder = ones({1, 0, 0, 0, /*strideWidth=*/2, /*strideHeight=*/1, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(5.5f, 16.5f, 11.5f, 28.5f));
}

TEST(Conv2dTest, FusedActivationClamps) {
  OperationBuilder builder = ones({2, 1, 1, 3});
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), testing::Each(6.0f));
}

TEST(Conv2dTest, DilationAndNchw) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 2, 3, 3}, counting(18))
      .input({1, 2, 2, 2}, std::vector<float>(8, 1.0f))
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .scalar(true)
      .scalars({2, 2})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1, 1, 1}));
  // The sum over the corners of both planes.
  EXPECT_THAT(builder.result<float>(), ElementsAre(1 + 3 + 7 + 9 + 10 + 12 + 16 + 18.0f));
}

TEST(Conv2dTest, UnsignedQuantization) {
  OperationBuilder builder(OperationType::kConv2d);
  builder
      .input(OperationBuilder::tensor(kUint8, {1, 1, 2, 2}, 0.5f, 128),
             std::vector<uint8_t>{130, 126, 255, 0})  // 1, -1, 63.5, -64
      .input(OperationBuilder::tensor(kUint8, {1, 1, 1, 2}, 0.25f, 10),
             std::vector<uint8_t>{14, 6})  // 1, -1
      .input(OperationBuilder::tensor(OperandType::kTensorInt32, {1}, 0.125f),
             std::vector<int32_t>{8})  // 1
      .scalars({2, 1, 1, 0})
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f, 100));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(103, 229));  // 3, 128.5 rounded up
}

TEST(Conv2dTest, PerChannelScales) {
  graph::Operand filter =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 1, 1, 1});
  filter.perChannel = {0, {0.5f, 2.0f}};
  OperationBuilder builder(OperationType::kConv2d);
  builder
      .input(OperationBuilder::tensor(kInt8, {1, 1, 1, 1}, 1.0f, -128), std::vector<int8_t>{-118})
      .input(filter, std::vector<int8_t>{4, -4})
      .input(OperationBuilder::tensor(OperandType::kTensorInt32, {2}), std::vector<int32_t>{2, 1})
      .scalars({2, 1, 1, 0})
      .output(OperationBuilder::tensor(kInt8, {}, 1.0f, 0));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(21, -78));
}

TEST(Conv2dTest, QuantizedActivationSaturates) {
  OperationBuilder builder(OperationType::kConv2d);
  builder
      .input(OperationBuilder::tensor(kInt8, {1, 1, 2, 1}, 1.0f, 0), std::vector<int8_t>{-9, 100})
      .input(OperationBuilder::tensor(kInt8, {1, 1, 1, 1}, 1.0f, 0), std::vector<int8_t>{100})
      .omitted(OperandType::kTensorInt32)
      .scalars({2, 1, 1, 3})
      .output(OperationBuilder::tensor(kInt8, {}, 0.1f, -20));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-20, 40));
}

TEST(Conv2dTest, FloatInputTakesEightBitFilters) {
  graph::Operand filter =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 1, 1, 2});
  filter.perChannel = {0, {0.5f, 2.0f}};
  OperationBuilder builder(OperationType::kConv2d);
  // 255 is the greatest value, so the input is rounded to steps of 1.
  builder.input({1, 1, 1, 2}, std::vector<float>{2.25f, 255.0f})
      .input(filter, std::vector<int8_t>{2, 4, 1, -1})
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(512.0f, -506.0f));
}

TEST(Conv2dTest, HalfRoundsOnce) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 1, 1, 2}, std::vector<Half>{Half(2048), Half(1)})
      .input({1, 1, 1, 2}, std::vector<Half>{Half(1), Half(1.5f)})
      .input({1}, std::vector<Half>{Half(0.5f)})
      .scalars({2, 1, 1, 0})
      .output(OperandType::kTensorFloat16);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(static_cast<float>(builder.result<Half>()[0]), 2050.0f);
}

TEST(Conv2dTest, FewerFilterChannelsMakeGroups) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 1, 1, 4}, std::vector<float>{1, 2, 3, 4})
      .input({2, 1, 1, 2}, std::vector<float>{1, 1, 1, 10})
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(3.0f, 43.0f));
}

TEST(Conv2dTest, EmptyBatch) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({0, 3, 3, 1}, std::vector<float>{})
      .input({1, 2, 2, 1}, std::vector<float>(4, 1.0f))
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  builder.inputShapesAreKnown();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{0, 2, 2, 1}));
}

TEST(Conv2dTest, SumsWrapInsteadOfOverflowing) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input(OperationBuilder::tensor(kUint8, {1, 1, 1, 1}, 1.0f, 0), std::vector<uint8_t>{255})
      .input(OperationBuilder::tensor(kUint8, {1, 1, 1, 1}, 1.0f, 0), std::vector<uint8_t>{255})
      .input(OperationBuilder::tensor(OperandType::kTensorInt32, {1}, 1.0f),
             std::vector<int32_t>{INT32_MAX})
      .scalars({2, 1, 1, 0})
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f, 3));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(0));
}

TEST(Conv2dTest, BadParameters) {
  const std::initializer_list<int32_t> lists[] = {
      {0, 1, 1, 0},            // padding code
      {3, 1, 1, 0},            //
      {2, 0, 1, 0},            // stride
      {2, 1, -1, 0},           //
      {2, 1, 1, 4},            // activation
      {2, 1, 1, -1},           //
      {-1, 0, 0, 0, 1, 1, 0},  // padding
      {INT32_MAX, INT32_MAX, 0, 0, 1, 1, 0},
      {0, 0, 0, 0, 1, INT32_MIN, 0},
  };
  for (const auto& list : lists) {
    const Status status = ones(list).run();
    ASSERT_FALSE(status) << testing::PrintToString(std::vector<int32_t>(list));
    EXPECT_EQ(status.error().code(), ErrorCode::kBadData) << status.error().toString();
  }
}

TEST(Conv2dTest, FilterLargerThanImage) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 3, 3, 1}, counting(9))
      .input({1, 4, 1, 1}, counting(4))
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  const Status status = builder.run();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("spans 4 elements, the padded height"));
}

TEST(Conv2dTest, HugeDilationIsRefused) {
  for (const int32_t dilation : {0, -1, INT32_MAX}) {
    OperationBuilder builder(OperationType::kConv2d);
    builder.input({1, 3, 3, 1}, counting(9))
        .input({1, 3, 3, 1}, counting(9))
        .omitted(kFloat)
        .scalars({1, 1, 1, 0})
        .scalar(false)
        .scalars({dilation, 1})
        .output();
    EXPECT_FALSE(builder.run()) << dilation;
  }
}

TEST(Conv2dTest, BiasMustFit) {
  const auto run = [](Dimensions dimensions, float scale) {
    OperationBuilder builder(OperationType::kConv2d);
    builder.input(OperationBuilder::tensor(kUint8, {1, 1, 1, 1}, 0.5f), std::vector<uint8_t>{1})
        .input(OperationBuilder::tensor(kUint8, {1, 1, 1, 1}, 0.5f), std::vector<uint8_t>{1})
        .input(OperationBuilder::tensor(OperandType::kTensorInt32, dimensions, scale),
               std::vector<int32_t>(dimensions[0]))
        .scalars({2, 1, 1, 0})
        .output(OperationBuilder::tensor(kUint8, {}, 1.0f));
    return builder.run();
  };
  EXPECT_TRUE(run({1}, 0.25f));
  EXPECT_TRUE(run({1}, 0.2501f));
  EXPECT_THAT(run({1}, 0.26f).error().message(), HasSubstr("scale"));
  EXPECT_THAT(run({2}, 0.25f).error().message(), HasSubstr("must be [1]"));
}

TEST(Conv2dTest, SignatureNamesArgumentAndAllowedTypes) {
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 3, 3, 1}, counting(9))
      .input({1, 2, 2, 1}, std::vector<int32_t>(4))
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  const Status status = builder.validate();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kBadData);
  EXPECT_THAT(
      status.error().message(),
      HasSubstr("Input 1 of CONV_2D is TENSOR_INT32[1,2,2,1], it must be TENSOR_{FLOAT32,"));
}

TEST(Conv2dTest, PerChannelDimensionIsChecked) {
  graph::Operand filter =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {1, 1, 1, 2});
  filter.perChannel = {3, {0.5f, 2.0f}};
  OperationBuilder builder(OperationType::kConv2d);
  builder.input({1, 1, 1, 2}, counting(2))
      .input(filter, std::vector<int8_t>{1, 1})
      .omitted(kFloat)
      .scalars({2, 1, 1, 0})
      .output();
  EXPECT_FALSE(builder.validate());
}

TEST(GroupedConv2dTest, EachGroupSeesItsChannels) {
  OperationBuilder builder(OperationType::kGroupedConv2d);
  builder.input({1, 1, 1, 4}, std::vector<float>{1, 2, 3, 4})
      .input({4, 1, 1, 2}, std::vector<float>{1, 1, 1, 0, 1, 1, 0, 1})
      .input({4}, std::vector<float>{0, 0, 0, 100})
      .scalars({1, 1, 1, /*groups=*/2, 0})
      .scalar(false)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(3.0f, 1.0f, 7.0f, 104.0f));
}

TEST(GroupedConv2dTest, PaddingAndStridesAreArgumentsOfTheirOwn) {
  const auto rows = [](int32_t padding, int32_t strideWidth) {
    OperationBuilder builder(OperationType::kGroupedConv2d);
    builder.input({1, 1, 3, 2}, std::vector<float>{1, 10, 2, 20, 3, 30})
        .input({2, 1, 2, 1}, std::vector<float>{1, 1, 1, 1})
        .input({2}, std::vector<float>{0, 0})
        .scalars({padding, strideWidth, 1, /*groups=*/2, 0})
        .scalar(false)
        .output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  constexpr int32_t kSame = 1;
  constexpr int32_t kValid = 2;
  EXPECT_THAT(rows(kValid, 1), ElementsAre(3, 30, 5, 50));
  EXPECT_THAT(rows(kValid, 2), ElementsAre(3, 30));
  EXPECT_THAT(rows(kSame, 1), ElementsAre(3, 30, 5, 50, 3, 30));
  EXPECT_THAT(rows(kSame, 2), ElementsAre(3, 30, 3, 30));
}

TEST(GroupedConv2dTest, GroupsMustDivideTheChannels) {
  for (const int32_t groups : {0, -1, 3, 4, INT32_MAX}) {
    OperationBuilder builder(OperationType::kGroupedConv2d);
    builder.input({1, 1, 1, 4}, counting(4))
        .input({2, 1, 1, 2}, counting(4))
        .input({2}, counting(2))
        .scalars({1, 1, 1, groups, 0})
        .scalar(false)
        .output();
    EXPECT_FALSE(builder.run()) << groups;
  }
}

OperationBuilder depthwise(int32_t multiplier) {
  OperationBuilder builder(OperationType::kDepthwiseConv2d);
  builder.input({1, 2, 2, 2}, std::vector<float>{1, 10, 2, 20, 3, 30, 4, 40})
      .input({1, 2, 1, 4}, std::vector<float>{1, 2, 3, 4, 1, 0, 0, 1})
      .input({4}, std::vector<float>{0, 0, 0, 1000})
      .scalars({2, 1, 1, multiplier, 0})
      .output();
  return builder;
}

TEST(DepthwiseConv2dTest, MultiplierRepeatsEachChannel) {
  OperationBuilder builder = depthwise(2);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1, 2, 4}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(4, 2, 30, 1070, 6, 4, 60, 1120));
}

TEST(DepthwiseConv2dTest, MultiplierMustFitTheFilter) {
  for (const int32_t multiplier : {1, 3, 0, -2, INT32_MAX})
    EXPECT_FALSE(depthwise(multiplier).run()) << multiplier;
}

TEST(DepthwiseConv2dTest, NchwWithDilationAndSamePadding) {
  OperationBuilder builder(OperationType::kDepthwiseConv2d);
  builder.input({1, 1, 3, 3}, counting(9))
      .input({1, 2, 2, 1}, std::vector<float>(4, 1.0f))
      .omitted(kFloat)
      .scalars({1, 1, 1, 1, 0})
      .scalar(true)
      .scalars({2, 2})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1, 3, 3}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(5, 10, 5, 10, 20, 10, 5, 10, 5));
}

OperationBuilder transposed(std::vector<int32_t> shape, int32_t padding) {
  const Dimensions dimensions = {static_cast<uint32_t>(shape.size())};
  OperationBuilder builder(OperationType::kTransposeConv2d);
  builder.input({1, 2, 1, 1}, std::vector<float>{1, 10})
      .input({1, 3, 1, 1}, std::vector<float>{1, 2, 3})
      .input({1}, std::vector<float>{0.5f})
      .input(dimensions, std::move(shape))
      .scalars({padding, 1, 2, 0})
      .scalar(false)
      .output();
  return builder;
}

TEST(TransposeConv2dTest, OverlappingWindowsAdd) {
  OperationBuilder builder = transposed({1, 5, 1, 1}, 2);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 5, 1, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1.5f, 2.5f, 13.5f, 20.5f, 30.5f));
}

TEST(TransposeConv2dTest, SamePaddingCutsTheEnds) {
  OperationBuilder four = transposed({1, 4, 1, 1}, 1);  // nothing cut at the top, one row below
  ASSERT_TRUE(four.run());
  EXPECT_THAT(four.result<float>(), ElementsAre(1.5f, 2.5f, 13.5f, 20.5f));
  OperationBuilder three = transposed({1, 3, 1, 1}, 1);
  ASSERT_TRUE(three.run());
  EXPECT_THAT(three.result<float>(), ElementsAre(2.5f, 13.5f, 20.5f));
}

TEST(TransposeConv2dTest, RowsBeyondTheLastWindowHoldTheBias) {
  OperationBuilder builder = transposed({1, 6, 1, 1}, 2);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1.5f, 2.5f, 13.5f, 20.5f, 30.5f, 0.5f));
}

TEST(TransposeConv2dTest, ExplicitPadding) {
  OperationBuilder builder(OperationType::kTransposeConv2d);
  builder.input({1, 1, 2, 1}, std::vector<float>{1, 10})
      .input({1, 1, 3, 1}, std::vector<float>{1, 2, 3})
      .omitted(kFloat)
      .scalars({1, 0, 0, 0, 2, 1, 0})
      .scalar(false)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1, 4, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(2, 13, 20, 30));
}

TEST(TransposeConv2dTest, BadOutputShapes) {
  const std::vector<int32_t> shapes[] = {{1, 7, 1, 1}, {1, 4, 1, 1},   {2, 5, 1, 1},
                                         {1, 5, 1, 2}, {1, 5, 1},      {1, -5, 1, 1},
                                         {1, 0, 1, 1}, {1, 5, 1, 1, 1}};
  for (const auto& shape : shapes)
    EXPECT_FALSE(transposed(shape, 2).run()) << testing::PrintToString(shape);
}

TEST(TransposeConv2dTest, PaddingMayNotSwallowTheOutput) {
  OperationBuilder builder(OperationType::kTransposeConv2d);
  builder.input({1, 1, 2, 1}, std::vector<float>{1, 10})
      .input({1, 1, 3, 1}, std::vector<float>{1, 2, 3})
      .omitted(kFloat)
      .scalars({INT32_MAX, INT32_MAX, 0, 0, 2, 1, 0})
      .scalar(false)
      .output();
  EXPECT_FALSE(builder.run());
}

}  // namespace
}  // namespace hearth::ops
