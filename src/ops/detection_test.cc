// SPDX-License-Identifier: Apache-2.0
// The detection operations on inputs that are small enough to check by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/bounding_box.h"
#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

TEST(BoundingBoxTest, Overlap) {
  EXPECT_FLOAT_EQ(overlap({0, 0, 2, 2}, {1, 0, 3, 2}), 1.0f / 3);
  EXPECT_EQ(overlap({0, 0, 1, 1}, {2, 2, 3, 3}), 0.0f);
  EXPECT_EQ(overlap({1, 1, 1, 1}, {1, 1, 1, 1}), 0.0f);
}

TEST(BoundingBoxTest, SuppressionKeepsTheBest) {
  const std::vector<Box> boxes = {{0, 0, 2, 2}, {0, 0, 2, 2.1f}, {5, 5, 6, 6}, {0, 0, 1, 1}};
  const std::vector<float> scores = {0.5f, 0.9f, 0.1f, NAN};
  EXPECT_THAT(suppressOverlaps({0, 1, 2, 3}, scores, boxes, 0.5f, 10), ElementsAre(1, 2, 3));
  EXPECT_THAT(suppressOverlaps({0, 1, 2, 3}, scores, boxes, 0.5f, 1), ElementsAre(1));
}

TEST(AxisAlignedBboxTransformTest, MovesScalesAndCuts) {
  OperationBuilder builder(OperationType::kAxisAlignedBboxTransform);
  builder.input({1, 4}, std::vector<float>{2, 2, 6, 4})
      .input({1, 4}, std::vector<float>{0.5f, 0.0f, std::log(2.0f), 0.0f})
      .input({1}, std::vector<int32_t>{0})
      .input({1, 2}, std::vector<float>{100, 9})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(FloatNear(2, 1e-5f), 2, FloatNear(9, 1e-5f), 4));
}

OperationBuilder boxWithNms(std::vector<int32_t> batches, int32_t kernel) {
  OperationBuilder builder(OperationType::kBoxWithNmsLimit);
  builder.input({3, 2}, std::vector<float>{0, 0.9f, 0, 0.8f, 0, 0.7f})
      .input({3, 8}, std::vector<float>{0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2,
                                        0, 0, 2, 2, 5, 5, 6, 6, 5, 5, 6, 6})
      .input({3}, std::move(batches))
      .scalar(0.1f)
      .scalar(-1)
      .scalar(kernel)
      .scalar(0.5f)
      .scalar(1.0f)
      .scalar(0.2f);
  builder.output().output().output(OperandType::kTensorInt32).output(OperandType::kTensorInt32);
  return builder;
}

TEST(BoxWithNmsLimitTest, SuppressesWithinABatchOnly) {
  OperationBuilder one = boxWithNms({0, 0, 0}, 0);
  ASSERT_TRUE(one.run());
  EXPECT_THAT(one.result<float>(0), ElementsAre(0.9f, 0.7f));
  EXPECT_THAT(one.result<int32_t>(2), ElementsAre(1, 1));
  OperationBuilder two = boxWithNms({0, 1, 1}, 0);
  ASSERT_TRUE(two.run());
  EXPECT_THAT(two.result<float>(0), ElementsAre(0.9f, 0.8f, 0.7f));
  EXPECT_THAT(two.result<int32_t>(3), ElementsAre(0, 1, 1));
}

TEST(BoxWithNmsLimitTest, GaussianLowersScores) {
  OperationBuilder builder = boxWithNms({0, 0, 0}, 2);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0),
              ElementsAre(0.9f, 0.7f, FloatNear(0.8f * std::exp(-1.0f), 1e-6f)));
}

TEST(BoxWithNmsLimitTest, RefusesFallingBatchesAndUnknownKernels) {
  EXPECT_FALSE(boxWithNms({1, 0, 0}, 0).run());
  EXPECT_FALSE(boxWithNms({0, 0, 0}, 3).run());
  EXPECT_FALSE(boxWithNms({0, 0, 0}, -1).run());
}

TEST(GenerateProposalsTest, SmallBoxesDropOut) {
  OperationBuilder builder(OperationType::kGenerateProposals);
  builder.input({1, 1, 2, 1}, std::vector<float>{0.5f, 0.6f})
      .input({1, 1, 2, 4}, std::vector<float>{0, 0, 0, 0, 0, 0, -5, 0})
      .input({1, 4}, std::vector<float>{0, 0, 4, 4})
      .input({1, 2}, std::vector<float>{32, 32})
      .scalar(4.0f)
      .scalar(4.0f)
      .scalars({-1, -1})
      .scalar(0.3f)
      .scalar(1.0f)
      .scalar(false);
  builder.output().output().output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(0.5f));
  EXPECT_THAT(builder.result<float>(1), ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(builder.result<int32_t>(2), ElementsAre(0));
}

TEST(HeatmapMaxKeypointTest, RefinesAlongASlope) {
  OperationBuilder builder(OperationType::kHeatmapMaxKeypoint);
  builder.input({1, 3, 3, 1}, std::vector<float>{0, 1, 0, 1, 2, 1.5f, 0, 1, 0})
      .input({1, 4}, std::vector<float>{0, 0, 3, 3})
      .scalar(false);
  builder.output().output();
  ASSERT_TRUE(builder.run());
  // Along x, the parabola through 1, 2, 1.5 has its peak 1/6 to the right.
  EXPECT_THAT(builder.result<float>(1), ElementsAre(FloatNear(1.5f + 1.0f / 6, 1e-5f), 1.5f));
  EXPECT_GT(builder.result<float>(0)[0], 2.0f);
}

OperationBuilder region(OperationType type, std::vector<float> box, int32_t batch) {
  OperationBuilder builder(type);
  builder.input({1, 2, 2, 1}, std::vector<float>{1, 2, 3, 4})
      .input({1, 4}, std::move(box))
      .input({1}, std::vector<int32_t>{batch})
      .scalars({1, 1})
      .scalar(1.0f)
      .scalar(1.0f);
  if (type == OperationType::kRoiAlign) builder.scalars({2, 2});
  builder.scalar(false).output();
  return builder;
}

TEST(RoiTest, AlignAveragesAndPoolingTakesTheLargest) {
  OperationBuilder align = region(OperationType::kRoiAlign, {0, 0, 1, 1}, 0);
  ASSERT_TRUE(align.run());
  EXPECT_THAT(align.result<float>(), ElementsAre(FloatNear(2.5f, 1e-6f)));
  OperationBuilder pool = region(OperationType::kRoiPooling, {0, 0, 1, 0}, 0);
  ASSERT_TRUE(pool.run());
  EXPECT_THAT(pool.result<float>(), ElementsAre(2));
}

TEST(RoiTest, RefusesBadRegionsAndBatches) {
  for (const OperationType type : {OperationType::kRoiAlign, OperationType::kRoiPooling}) {
    EXPECT_FALSE(region(type, {0, 0, 1, 1}, 1).run());
    EXPECT_FALSE(region(type, {0, 0, 1, 1}, -1).run());
    EXPECT_FALSE(region(type, {1, 0, 0, 1}, 0).run());
    EXPECT_FALSE(region(type, {0, 0, NAN, 1}, 0).run());
  }
}

TEST(DetectionPostprocessingTest, FastSuppression) {
  OperationBuilder builder(OperationType::kDetectionPostprocessing);
  builder.input({1, 2, 3}, std::vector<float>{0.9f, 0.2f, 0.7f, 0.9f, 0.6f, 0.1f})
      .input({1, 2, 4}, std::vector<float>(8, 0.0f))
      .input({2, 4}, std::vector<float>{1, 1, 2, 2, 11, 11, 2, 2});
  for (int i = 0; i < 4; ++i) builder.scalar(1.0f);
  builder.scalar(false).scalars({3, 1, 1}).scalar(0.3f).scalar(0.5f).scalar(true);
  builder.output().output().output(OperandType::kTensorInt32).output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(0.7f, 0.6f, 0));
  EXPECT_THAT(builder.result<int32_t>(3), ElementsAre(2));
  const std::vector<float> boxes = builder.result<float>(1);
  EXPECT_THAT(std::vector<float>(boxes.begin(), boxes.begin() + 8),
              ElementsAre(0, 0, 2, 2, 10, 10, 12, 12));
}

}  // namespace
}  // namespace hearth::ops
