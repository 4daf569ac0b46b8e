// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

TEST(SoftmaxTest, LastAxisByDefault) {
  OperationBuilder builder(OperationType::kSoftmax);
  builder.input({2, 2}, std::vector<float>{0.0f, std::log(3.0f), 1000.0f, -1000.0f})
      .scalar(1.0f)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(),
              ElementsAre(FloatNear(0.25f, 1e-6f), FloatNear(0.75f, 1e-6f), 1.0f, 0.0f));
}

TEST(SoftmaxTest, BetaAndNegativeAxis) {
  OperationBuilder builder(OperationType::kSoftmax);
  builder.input({2, 1, 1}, std::vector<float>{0.0f, std::log(2.0f)})
      .scalar(2.0f)
      .scalar(-3)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(FloatNear(0.2f, 1e-6f), FloatNear(0.8f, 1e-6f)));
}

TEST(SoftmaxTest, Signed) {
  const OperandType type = OperandType::kTensorQuant8AsymmSigned;
  OperationBuilder builder(OperationType::kSoftmax);
  builder.input(OperationBuilder::tensor(type, {1, 4}, 0.5f, 0), std::vector<int8_t>{5, 5, 5, 5})
      .scalar(1.0f)
      .output(OperationBuilder::tensor(type, {}, 1.0f / 256, -128));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), testing::Each(-64));
}

TEST(SoftmaxTest, LogOfHalf) {
  OperationBuilder builder(OperationType::kLogSoftmax);
  builder.input({1, 2}, std::vector<Half>{Half(1), Half(1)})
      .scalar(Half(1))
      .scalar(1)
      .output(OperandType::kTensorFloat16);
  ASSERT_TRUE(builder.run());
  EXPECT_NEAR(static_cast<float>(builder.result<Half>()[0]), -std::log(2.0f), 1e-3);
}

// The expected results, along either axis, are TFLite's.
TEST(SoftmaxTest, SymmetricIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  const auto output = OperationBuilder::tensor(type, {}, 1.0f / 32768);
  OperationBuilder rows(OperationType::kSoftmax);
  rows.input(OperationBuilder::tensor(type, {2, 5}, 1.0f / 4096),
             std::vector<int16_t>{-32768, -4097, 4000, 32767, 32000, 7, 7, 8, -100, 9000})
      .scalar(1.0f)
      .output(output);
  ASSERT_TRUE(rows.run());
  EXPECT_THAT(rows.result<int16_t>(),
              ElementsAre(1, 2, 16, 17903, 14846, 2529, 2529, 2530, 2463, 22718));
  OperationBuilder column(OperationType::kSoftmax);
  column.input(OperationBuilder::tensor(type, {3, 1}, 0.01f), std::vector<int16_t>{-300, 200, 210})
      .scalar(0.5f)
      .scalar(0)
      .output(output);
  ASSERT_TRUE(column.run());
  EXPECT_THAT(column.result<int16_t>(), ElementsAre(1261, 15359, 16147));
}

// Each row alone gives the same result.
TEST(SoftmaxTest, ManyRowsIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  constexpr uint32_t kRows = 70;
  constexpr uint32_t kColumns = 1000;
  std::vector<int16_t> values(size_t{kRows} * kColumns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int16_t>(i * i * 2654435761u >> 7);
  const auto run = [&](uint32_t rows, std::vector<int16_t> numbers) {
    OperationBuilder builder(OperationType::kSoftmax);
    builder.input(OperationBuilder::tensor(type, {rows, kColumns}, 1.0f / 4096), numbers)
        .scalar(1.0f)
        .output(OperationBuilder::tensor(type, {}, 1.0f / 32768));
    EXPECT_TRUE(builder.run());
    return builder.result<int16_t>();
  };
  const std::vector<int16_t> made = run(kRows, values);
  for (size_t row = 0; row < kRows; ++row) {
    const auto begin = static_cast<ptrdiff_t>(row * kColumns);
    const auto end = begin + kColumns;
    EXPECT_EQ(std::vector(made.begin() + begin, made.begin() + end),
              run(1, {values.begin() + begin, values.begin() + end}));
  }
}

TEST(SoftmaxTest, BadParameters) {
  const auto run = [](float beta, int32_t axis) {
    OperationBuilder builder(OperationType::kSoftmax);
    builder.input({1, 2}, std::vector<float>{1, 2}).scalar(beta).scalar(axis).output();
    return builder.run();
  };
  EXPECT_TRUE(run(1.0f, 0));
  EXPECT_FALSE(run(0.0f, 0));
  EXPECT_FALSE(run(-1.0f, 0));
  EXPECT_FALSE(run(NAN, 0));
  EXPECT_FALSE(run(INFINITY, 0));
  EXPECT_FALSE(run(1.0f, 2));
  EXPECT_FALSE(run(1.0f, INT32_MIN));
}

TEST(SoftmaxTest, OutputScaleIsFixed) {
  const OperandType type = OperandType::kTensorQuant8Asymm;
  OperationBuilder builder(OperationType::kSoftmax);
  builder.input(OperationBuilder::tensor(type, {1, 1}, 0.5f, 0), std::vector<uint8_t>{5})
      .scalar(1.0f)
      .output(OperationBuilder::tensor(type, {}, 1.0f / 128, 0));
  EXPECT_FALSE(builder.validate());
}

}  // namespace
}  // namespace hearth::ops
