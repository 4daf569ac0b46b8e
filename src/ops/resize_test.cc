// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.
#include "ops/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

constexpr OperationType kBilinear = OperationType::kResizeBilinear;
constexpr OperationType kNearest = OperationType::kResizeNearestNeighbor;

std::vector<float> resizeRow(OperationType type, std::vector<float> row, int32_t width,
                             bool alignCorners, bool halfPixelCenters) {
  OperationBuilder builder(type);
  const uint32_t size = static_cast<uint32_t>(row.size());
  builder.input({1, 1, size, 1}, std::move(row))
      .scalars({width, 1})
      .scalar(false)
      .scalar(alignCorners)
      .scalar(halfPixelCenters)
      .output();
  EXPECT_TRUE(builder.run());
  return builder.result<float>();
}

TEST(ResizeTest, BilinearPositions) {
  EXPECT_THAT(resizeRow(kBilinear, {0, 4}, 4, false, false), ElementsAre(0, 2, 4, 4));
  EXPECT_THAT(resizeRow(kBilinear, {0, 3}, 4, true, false), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(resizeRow(kBilinear, {0, 4}, 4, false, true), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(resizeRow(kBilinear, {0, 1, 2, 3}, 2, false, true), ElementsAre(0.5f, 2.5f));
}

TEST(ResizeTest, NearestPositions) {
  EXPECT_THAT(resizeRow(kNearest, {0, 4}, 4, false, false), ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(resizeRow(kNearest, {0, 1, 2}, 2, false, false), ElementsAre(0, 1));
  EXPECT_THAT(resizeRow(kNearest, {0, 1, 2}, 2, true, false), ElementsAre(0, 2));
  EXPECT_THAT(resizeRow(kNearest, {0, 1, 2}, 2, false, true), ElementsAre(0, 2));
}

TEST(ResizeTest, ScalesGiveTheSize) {
  OperationBuilder builder(kBilinear);
  builder.input({1, 2, 2, 1}, std::vector<float>{1, 2, 3, 4}).scalar(1.5f).scalar(2.0f).output();
  ASSERT_TRUE(builder.run());
  // The width comes first: 2 * 1.5 columns, 2 * 2 rows.
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 4, 3, 1}));
}

TEST(ResizeTest, QuantizedRoundsAndNchwKeepsChannelsApart) {
  OperationBuilder builder(kBilinear);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {1, 2, 1, 2}, 1.0f, 3),
             std::vector<int8_t>{-128, -125, 10, 127})
      .scalars({4, 1})
      .scalar(true)
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {}, 1.0f, 3));
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 1, 4}));
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-128, -126, -125, -125, 10, 69, 127, 127));
}

// Resizes both dimensions and compares with the definition in double.
TEST(ResizeTest, BilinearAgreesWithTheDefinition) {
  std::vector<float> image(5 * 7 * 3);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>((i * 37) % 101);
  OperationBuilder builder(kBilinear);
  builder.input({1, 5, 7, 3}, image).scalars({13, 9}).output();
  ASSERT_TRUE(builder.run());
  const std::vector<float> result = builder.result<float>();
  for (size_t y = 0; y < 9; ++y) {
    for (size_t x = 0; x < 13; ++x) {
      const double fy = static_cast<double>(y) * 5 / 9, fx = static_cast<double>(x) * 7 / 13;
      const size_t y0 = static_cast<size_t>(fy), x0 = static_cast<size_t>(fx);
      const size_t y1 = std::min<size_t>(y0 + 1, 4), x1 = std::min<size_t>(x0 + 1, 6);
      for (size_t c = 0; c < 3; ++c) {
        const auto at = [&](size_t i, size_t j) -> double {
          return image[(i * 7 + j) * 3 + c];
        };
        const double wy = fy - static_cast<double>(y0), wx = fx - static_cast<double>(x0);
        const double expected = (at(y0, x0) * (1 - wx) + at(y0, x1) * wx) * (1 - wy) +
                                (at(y1, x0) * (1 - wx) + at(y1, x1) * wx) * wy;
        ASSERT_NEAR(result[(y * 13 + x) * 3 + c], expected, 1e-4);
      }
    }
  }
}

TEST(ResizeTest, RefusesBadSizes) {
  for (const OperationType type : {kBilinear, kNearest}) {
    for (const int32_t width : {0, -1, INT32_MIN}) {
      OperationBuilder builder(type);
      builder.input({1, 1, 2, 1}, std::vector<float>{1, 2}).scalars({width, 1}).scalar(false);
      EXPECT_FALSE(builder.output().run());
    }
    for (const float scale : {0.0f, -1.0f, 0.4f, NAN, INFINITY}) {
      OperationBuilder builder(type);
      builder.input({1, 1, 2, 1}, std::vector<float>{1, 2}).scalar(scale).scalar(1.0f);
      EXPECT_FALSE(builder.scalar(false).output().run()) << scale;
    }
    OperationBuilder both(type);
    both.input({1, 1, 2, 1}, std::vector<float>{1, 2}).scalars({2, 1}).scalar(false);
    EXPECT_FALSE(both.scalar(true).scalar(true).output().run());
  }
}

}  // namespace
}  // namespace hearth::ops
