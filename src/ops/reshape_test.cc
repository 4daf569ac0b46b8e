// SPDX-License-Identifier: Apache-2.0
#include "ops/reshape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OperationBuilder reshape(std::vector<int32_t> shape) {
  OperationBuilder builder(OperationType::kReshape);
  builder.input({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const uint32_t rank = static_cast<uint32_t>(shape.size());
  builder.input({rank}, std::move(shape)).output();
  return builder;
}

TEST(ReshapeTest, KeepsTheElements) {
  OperationBuilder builder = reshape({3, -1, 1});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{3, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ReshapeTest, RefusesShapesThatDoNotFit) {
  for (const std::vector<int32_t>& shape : {std::vector<int32_t>{-1, -1},
                                            {4, -1},
                                            {7},
                                            {-2, -3},
                                            {0, -1},
                                            {1 << 30, 1 << 30, 1 << 30}}) {
    const Status status = reshape(shape).run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kBadData);
  }
  EXPECT_THAT(reshape({7}).run().error().message(), HasSubstr("[7] of 7 elements"));
}

TEST(ReshapeTest, MovesElementsOfAnySize) {
  OperationBuilder builder(OperationType::kReshape);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorInt64, {2, 1}),
             std::vector<int64_t>{1, -2})
      .input({1}, std::vector<int32_t>{2})
      .output(OperandType::kTensorInt64);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int64_t>(), ElementsAre(1, -2));
}

TEST(ReshapeTest, SqueezesTheNamedOrAllDimensions) {
  OperationBuilder named(OperationType::kSqueeze);
  named.input({1, 2, 1}, std::vector<float>{1, 2}).input({1}, std::vector<int32_t>{-1}).output();
  ASSERT_TRUE(named.run());
  EXPECT_EQ(named.dimensions(), (Dimensions{1, 2}));
  OperationBuilder all(OperationType::kSqueeze);
  all.input({1, 2, 1}, std::vector<float>{1, 2}).omitted(OperandType::kTensorInt32).output();
  ASSERT_TRUE(all.run());
  EXPECT_EQ(all.dimensions(), (Dimensions{2}));
  OperationBuilder wrong(OperationType::kSqueeze);
  wrong.input({1, 2, 1}, std::vector<float>{1, 2}).input({1}, std::vector<int32_t>{1}).output();
  EXPECT_FALSE(wrong.run());
}

TEST(ReshapeTest, SqueezingEveryDimensionGivesRankOne) {
  OperationBuilder builder(OperationType::kSqueeze);
  builder.input({1, 1}, std::vector<float>{5}).omitted(OperandType::kTensorInt32).output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1}));
}

TEST(ReshapeTest, ExpandsAtEitherEnd) {
  for (const auto& [axis, expected] :
       {std::pair(0, Dimensions{1, 2}), std::pair(1, Dimensions{2, 1}),
        std::pair(-1, Dimensions{2, 1}), std::pair(-2, Dimensions{1, 2})}) {
    OperationBuilder builder(OperationType::kExpandDims);
    builder.input({2}, std::vector<float>{1, 2}).scalar(axis).output();
    ASSERT_TRUE(builder.run());
    EXPECT_EQ(builder.dimensions(), expected);
  }
  OperationBuilder builder(OperationType::kExpandDims);
  builder.input({2}, std::vector<float>{1, 2}).scalar(2).output();
  EXPECT_FALSE(builder.run());
}

TEST(ReshapeTest, NeedsARuntimeValueForAnUnknownShape) {
  graph::Model model;
  graph::Subgraph subgraph;
  subgraph.operands = {OperationBuilder::tensor(OperandType::kTensorFloat32, {4}),
                       OperationBuilder::tensor(OperandType::kTensorInt32, {2}),
                       OperationBuilder::tensor(OperandType::kTensorFloat32, {})};
  subgraph.operations = {{OperationType::kReshape, {0, 1}, {2}, ""}};
  model.subgraphs = {subgraph};
  OperationContext context = makeContext(model, model.main(), model.main().operations[0]);
  const auto parameters = parseReshape(context);
  ASSERT_FALSE(parameters);
  EXPECT_TRUE(isNeedsRuntimeValue(parameters.error()));
}

TEST(ReshapeTest, RankAndFill) {
  OperationBuilder rank(OperationType::kRank);
  rank.input({1, 2, 1}, std::vector<float>{1, 2}).output(OperandType::kInt32);
  ASSERT_TRUE(rank.run());
  EXPECT_THAT(rank.result<int32_t>(), ElementsAre(3));
  OperationBuilder fill(OperationType::kFill);
  fill.input({2}, std::vector<int32_t>{2, 2}).scalar(1.5f).output();
  ASSERT_TRUE(fill.run());
  EXPECT_EQ(fill.dimensions(), (Dimensions{2, 2}));
  EXPECT_THAT(fill.result<float>(), ElementsAre(1.5f, 1.5f, 1.5f, 1.5f));
  OperationBuilder halves(OperationType::kFill);
  halves.input({1}, std::vector<int32_t>{2})
      .scalar(Half(0.25f))
      .output(OperandType::kTensorFloat16);
  ASSERT_TRUE(halves.run());
  EXPECT_THAT(halves.result<Half>(), ElementsAre(Half(0.25f), Half(0.25f)));
  OperationBuilder negative(OperationType::kFill);
  negative.input({2}, std::vector<int32_t>{2, -2}).scalar(1.5f).output();
  EXPECT_FALSE(negative.run());
}

}  // namespace
}  // namespace hearth::ops
