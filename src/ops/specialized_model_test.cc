// SPDX-License-Identifier: Apache-2.0
#include "ops/specialized_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/operation.h"
#include "ops/testing/small_model.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> integersOf(const graph::Model& model, uint32_t operand) {
  const graph::Operand& constant = model.main().operands[operand];
  std::vector<int32_t> values(constant.location.length / sizeof(int32_t));
  std::memcpy(values.data(), model.constantData(constant), constant.location.length);
  return values;
}

// x -> SHAPE -> STRIDED_SLICE (the batch) -> PACK with -1 -> RESHAPE of x, as Keras writes Flatten.
struct Flatten {
  SmallModel builder;
  uint32_t x = builder.input({0, 0, 3});
  uint32_t shape = builder.temporary(OperandType::kTensorInt32);
  uint32_t batch = builder.temporary(OperandType::kTensorInt32);
  uint32_t row = builder.temporary(OperandType::kTensorInt32);
  uint32_t flat = builder.output();

  Flatten() {
    const uint32_t first = builder.constant({0});
    const uint32_t end = builder.constant({1});
    const uint32_t stride = builder.constant({1});
    const uint32_t none = builder.constant({0}, true);
    const uint32_t open = builder.constant({-1});
    const uint32_t axis = builder.constant({0}, true);
    builder.operation(OperationType::kShape, {x}, {shape});
    builder.operation(OperationType::kStridedSlice, {shape, first, end, stride, none, none, none},
                      {batch});
    builder.operation(OperationType::kConcatenation, {batch, open, axis}, {row});
    builder.operation(OperationType::kReshape, {x, row}, {flat});
  }
};

TEST(SpecializedModelTest, WhatFollowsFromShapesIsAConstant) {
  Flatten flatten;
  const auto made = specialize(flatten.builder.model(), std::vector<Dimensions>{{2, 5, 3}});
  ASSERT_TRUE(made) << made.error().toString();
  const graph::Model& model = *made->model;
  EXPECT_THAT(made->operations, ElementsAre(3u));
  ASSERT_EQ(model.main().operations.size(), 1u);
  EXPECT_EQ(model.main().operations[0].type, OperationType::kReshape);
  EXPECT_THAT(integersOf(model, flatten.row), ElementsAre(2, -1));
  EXPECT_THAT(model.main().operands[flatten.x].dimensions, ElementsAre(2u, 5u, 3u));
  EXPECT_THAT(model.main().operands[flatten.flat].dimensions, ElementsAre(2u, 15u));
  EXPECT_TRUE(graph::validate(model));
  EXPECT_TRUE(validateOperations(model));
}

// The dimensions of FILL are an input, so its shape depends on values; what it fills with is known.
TEST(SpecializedModelTest, ScalarsThatFollowFromShapesAreConstants) {
  SmallModel builder;
  const uint32_t x = builder.input({2, 5, 3});
  const uint32_t dimensions = builder.add(OperandType::kTensorInt32, {2}, Lifetime::kSubgraphInput);
  const uint32_t rank = builder.temporary(OperandType::kInt32);
  const uint32_t filled = builder.output(OperandType::kTensorInt32);
  builder.operation(OperationType::kRank, {x}, {rank});
  builder.operation(OperationType::kFill, {dimensions, rank}, {filled});
  const auto made = specializePartly(builder.model(), std::vector<Dimensions>{{2, 5, 3}, {2}});
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_THAT(made->operations, ElementsAre(1u));
  EXPECT_THAT(made->open, ElementsAre(0u));
  ASSERT_TRUE(made->model->main().operands[rank].isConstant());
  EXPECT_THAT(integersOf(*made->model, rank), ElementsAre(3));
  EXPECT_TRUE(graph::validate(*made->model));
}

TEST(SpecializedModelTest, TheSameOperationsAreLeftForAllShapes) {
  Flatten flatten;
  const graph::Model& model = flatten.builder.model();
  const auto first = specialize(model, std::vector<Dimensions>{{1, 2, 3}});
  const auto second = specialize(model, std::vector<Dimensions>{{7, 1, 3}});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->operations, second->operations);
  EXPECT_THAT(second->model->main().operands[flatten.flat].dimensions, ElementsAre(7u, 3u));
}

TEST(SpecializedModelTest, OutputsOfTheModelKeepTheirOperations) {
  SmallModel builder;
  const uint32_t x = builder.input({0, 4});
  const uint32_t shape = builder.output(OperandType::kTensorInt32);
  const uint32_t y = builder.output();
  builder.operation(OperationType::kShape, {x}, {shape});
  builder.operation(OperationType::kReshape, {x, shape}, {y});
  const auto made = specialize(builder.model(), std::vector<Dimensions>{{3, 4}});
  // RESHAPE takes its shape from an output of the model, which is no constant.
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_THAT(made->operations, ElementsAre(0u, 1u));
  EXPECT_EQ(made->model->main().operands[shape].lifetime, Lifetime::kSubgraphOutput);
}

TEST(SpecializedModelTest, ShapesThatDependOnValuesAreUnsupported) {
  SmallModel builder;
  const uint32_t x = builder.input({0, 4});
  const uint32_t shape = builder.add(OperandType::kTensorInt32, {2}, Lifetime::kSubgraphInput);
  const uint32_t y = builder.output();
  builder.operation(OperationType::kReshape, {x, shape}, {y});
  const auto made = specialize(builder.model(), std::vector<Dimensions>{{3, 4}, {2}});
  ASSERT_FALSE(made);
  EXPECT_TRUE(isNeedsRuntimeValue(made.error())) << made.error().toString();
}

TEST(SpecializedModelTest, ShapesHaveToFitTheModel) {
  Flatten flatten;
  const graph::Model& model = flatten.builder.model();
  for (const Dimensions& wrong : {Dimensions{2, 5, 4}, Dimensions{2, 5}, Dimensions{}}) {
    const auto made = specialize(model, std::vector<Dimensions>{wrong});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::kBadData);
    EXPECT_THAT(made.error().message(), HasSubstr("Input 0"));
  }
  const auto empty = specialize(model, std::vector<Dimensions>{{0, 5, 3}});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code(), ErrorCode::kUnsupported);
  const auto huge = specialize(model, std::vector<Dimensions>{{UINT32_MAX, UINT32_MAX, 3}});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), ErrorCode::kBadData);
  EXPECT_EQ(specialize(model, {}).error().code(), ErrorCode::kBadData);
}

TEST(SpecializedModelTest, RandomNumbersAreDrawnInEachRun) {
  SmallModel builder;
  const uint32_t x = builder.input({0, 4});
  const uint32_t shape = builder.temporary(OperandType::kTensorInt32);
  const uint32_t wide = builder.temporary(OperandType::kTensorInt64);
  const uint32_t position = builder.add(OperandType::kTensorInt64, {1}, Lifetime::kSubgraphInput);
  const uint32_t y = builder.output();
  const uint32_t next = builder.output(OperandType::kTensorInt64);
  builder.operation(OperationType::kShape, {x}, {shape});
  builder.operation(OperationType::kCast, {shape}, {wide});
  builder.operation(OperationType::kRandomUniform, {shape, wide, position}, {y, next});
  const auto made = specialize(builder.model(), std::vector<Dimensions>{{3, 4}, {1}});
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_THAT(made->operations, ElementsAre(2u));
  EXPECT_THAT(made->model->main().operands[y].dimensions, ElementsAre(3u, 4u));
}

}  // namespace
}  // namespace hearth::ops
