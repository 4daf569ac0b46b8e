// SPDX-License-Identifier: Apache-2.0
// The three normalisations and CHANNEL_SHUFFLE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

TEST(L2NormalizationTest, EachRow) {
  OperationBuilder builder(OperationType::kL2Normalization);
  builder.input({2, 2}, std::vector<float>{3, 4, 0, 0}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(0.6f, 0.8f, 0, 0));
}

TEST(L2NormalizationTest, FirstAxis) {
  OperationBuilder builder(OperationType::kL2Normalization);
  builder.input({2, 2}, std::vector<float>{3, 5, 4, 12}).scalar(-2).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(),
              ElementsAre(0.6f, FloatNear(5.0f / 13, 1e-6f), 0.8f, FloatNear(12.0f / 13, 1e-6f)));
}

TEST(L2NormalizationTest, Quantized) {
  OperationBuilder builder(OperationType::kL2Normalization);
  const OperandType type = OperandType::kTensorQuant8Asymm;
  builder.input(OperationBuilder::tensor(type, {1, 2}, 0.1f, 100), std::vector<uint8_t>{103, 96})
      .output(OperationBuilder::tensor(type, {}, 1.0f / 128, 128));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(205, 26));
}

TEST(LocalResponseNormalizationTest, WindowIsCutAtTheEnds) {
  OperationBuilder builder(OperationType::kLocalResponseNormalization);
  builder.input({1, 1, 1, 3}, std::vector<float>{1, 2, 3})
      .scalar(1)
      .scalar(1.0f)
      .scalar(2.0f)
      .scalar(1.0f)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(),
              ElementsAre(FloatNear(1.0f / 11, 1e-6f), FloatNear(2.0f / 29, 1e-6f),
                          FloatNear(3.0f / 27, 1e-6f)));
}

TEST(LocalResponseNormalizationTest, AnyRadius) {
  for (const int32_t radius : {0, 100, INT32_MAX}) {
    OperationBuilder builder(OperationType::kLocalResponseNormalization);
    builder.input({2}, std::vector<float>{1, 2}).scalar(radius);
    builder.scalar(0.0f).scalar(1.0f).scalar(1.0f).scalar(0).output();
    ASSERT_TRUE(builder.run());
    EXPECT_FLOAT_EQ(builder.result<float>()[1], radius == 0 ? 0.5f : 0.4f);
  }
  OperationBuilder negative(OperationType::kLocalResponseNormalization);
  negative.input({1}, std::vector<float>{1}).scalar(-1);
  negative.scalar(0.0f).scalar(1.0f).scalar(1.0f).scalar(0).output();
  EXPECT_FALSE(negative.run());
}

// OperationBuilder compares each with the reference kernel.
TEST(LocalResponseNormalizationTest, RowsAndColumnsOfAnySize) {
  for (const uint32_t size : {1u, 3u, 15u, 16u, 17u, 64u, 100u, 3000u})
    for (const int32_t radius : {0, 1, 5, 64, 65})
      for (const float beta : {0.5f, 0.75f, 1.0f, 0.6f})
        for (const int32_t axis : {1, 0}) {
          std::vector<float> values(3 * size);
          for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
          OperationBuilder builder(OperationType::kLocalResponseNormalization);
          builder.input({3, size}, values).scalar(radius).scalar(1.5f).scalar(0.25f);
          builder.scalar(beta).scalar(axis).output();
          const Status status = builder.run();
          ASSERT_TRUE(status) << size << " " << radius << " " << beta << " " << axis << " "
                              << status.error().toString();
        }
}

TEST(LocalResponseNormalizationTest, SquaresBeyondFloat32) {
  std::vector<float> values(40, 1.0f);
  values[21] = 3e25f;
  OperationBuilder builder(OperationType::kLocalResponseNormalization);
  builder.input({2, 20}, values).scalar(2).scalar(1.0f).scalar(1.0f).scalar(0.5f).output();
  ASSERT_TRUE(builder.run());
  const std::vector<float> result = builder.result<float>();
  EXPECT_NEAR(result[0], 0.5f, 1e-6f);
  EXPECT_NEAR(result[21], 1.0f, 1e-6f);
  EXPECT_NEAR(result[39], 0.5f, 1e-6f);
}

TEST(InstanceNormalizationTest, EachChannelOfEachImage) {
  OperationBuilder builder(OperationType::kInstanceNormalization);
  builder.input({1, 2, 1, 2}, std::vector<float>{1, 5, 3, 5});
  builder.scalar(2.0f).scalar(10.0f).scalar(0.0f).scalar(true).output();
  ASSERT_TRUE(builder.run());  // planes {1, 5} and {3, 5}
  EXPECT_THAT(builder.result<float>(), ElementsAre(8, 12, 8, 12));
}

TEST(InstanceNormalizationTest, AChannelOfOneElementIsTheOffset) {
  OperationBuilder builder(OperationType::kInstanceNormalization);
  builder.input({1, 1, 1, 1}, std::vector<float>{7});
  builder.scalar(2.0f).scalar(10.0f).scalar(1.0f).scalar(true).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(10));
}

TEST(InstanceNormalizationTest, ParametersHaveThePrecisionOfTheData) {
  OperationBuilder builder(OperationType::kInstanceNormalization);
  builder.input({1, 1, 1, 1}, std::vector<Half>{Half(1)});
  builder.scalar(2.0f).scalar(10.0f).scalar(0.0f).scalar(true).output(OperandType::kTensorFloat16);
  EXPECT_FALSE(builder.validate());
}

TEST(ChannelShuffleTest, InterleavesGroups) {
  OperationBuilder builder(OperationType::kChannelShuffle);
  builder.input({1, 6}, std::vector<float>{1, 2, 3, 4, 5, 6}).scalars({3, -1}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(ChannelShuffleTest, AlongTheFirstAxis) {
  OperationBuilder builder(OperationType::kChannelShuffle);
  const OperandType type = OperandType::kTensorQuant8AsymmSigned;
  builder
      .input(OperationBuilder::tensor(type, {4, 2}, 1.0f),
             std::vector<int8_t>{1, 2, 3, 4, 5, 6, 7, 8})
      .scalars({2, 0})
      .output(OperationBuilder::tensor(type, {}, 1.0f));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(ChannelShuffleTest, BadParameters) {
  for (const auto& [groups, axis] : {std::pair{0, 0}, {-1, 0}, {4, 0}, {2, 1}, {2, INT32_MIN}}) {
    OperationBuilder builder(OperationType::kChannelShuffle);
    builder.input({6}, std::vector<float>(6)).scalars({groups, axis}).output();
    EXPECT_FALSE(builder.run()) << groups << " " << axis;
  }
}

}  // namespace
}  // namespace hearth::ops
