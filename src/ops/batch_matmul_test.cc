// SPDX-License-Identifier: Apache-2.0
#include "ops/batch_matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

OperationBuilder product(Dimensions left, bool isLeftTransposed, Dimensions right,
                         bool isRightTransposed) {
  const auto count = [](const Dimensions& dimensions) {
    uint32_t size = 1;
    for (uint32_t d : dimensions) size *= d;
    std::vector<float> values(size);
    for (uint32_t i = 0; i < size; ++i) values[i] = static_cast<float>(i + 1);
    return values;
  };
  OperationBuilder builder(OperationType::kBatchMatmul);
  builder.input(left, count(left)).input(right, count(right));
  builder.scalar(isLeftTransposed).scalar(isRightTransposed).output();
  return builder;
}

TEST(BatchMatmulTest, PlainMatrices) {
  OperationBuilder builder = product({2, 3}, false, {3, 2}, false);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 2}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(22, 28, 49, 64));
}

TEST(BatchMatmulTest, Transposed) {
  OperationBuilder left = product({3, 2}, true, {3, 2}, false);
  ASSERT_TRUE(left.run());
  EXPECT_THAT(left.result<float>(), ElementsAre(35, 44, 44, 56));
  OperationBuilder right = product({2, 3}, false, {2, 3}, true);
  ASSERT_TRUE(right.run());
  EXPECT_THAT(right.result<float>(), ElementsAre(14, 32, 32, 77));
}

TEST(BatchMatmulTest, BatchesAreBroadcast) {
  OperationBuilder builder = product({2, 1, 1, 2}, false, {2, 2, 1}, false);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 2, 1, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(5, 11, 11, 25));
}

TEST(BatchMatmulTest, Integers) {
  OperationBuilder builder(OperationType::kBatchMatmul);
  builder.input({1, 2}, std::vector<int32_t>{INT32_MAX, 2})
      .input({2, 1}, std::vector<int32_t>{2, 3});
  builder.scalar(false).scalar(false).output(OperandType::kTensorInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(4));  // wraps
}

TEST(BatchMatmulTest, SignedQuantization) {
  const OperandType type = OperandType::kTensorQuant8AsymmSigned;
  OperationBuilder builder(OperationType::kBatchMatmul);
  builder.input(OperationBuilder::tensor(type, {1, 2}, 0.5f, 1), std::vector<int8_t>{3, 5})
      .input(OperationBuilder::tensor(type, {2, 1}, 2.0f, -1), std::vector<int8_t>{0, 9});
  builder.scalar(false).scalar(false).output(OperationBuilder::tensor(type, {}, 1.0f, -10));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(32));  // 1 * 2 + 2 * 20 = 42
}

// The results of TFLite.
TEST(BatchMatmulTest, SymmetricIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  OperationBuilder builder(OperationType::kBatchMatmul);
  builder
      .input(OperationBuilder::tensor(type, {2, 3}, 1.0f / 4096),
             std::vector<int16_t>{-32768, -32768, 1000, 77, -5, 20000})
      .input(OperationBuilder::tensor(type, {3, 2}, 1.0f / 4096),
             std::vector<int16_t>{-32768, 300, -32768, -7, 32767, 12345});
  builder.scalar(false).scalar(false).output(OperationBuilder::tensor(type, {}, 1.0f / 7));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int16_t>(), ElementsAre(910, 1, 272, 103));
}

// Sums go beyond 32 bits.
TEST(BatchMatmulTest, LongRowsIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  for (const uint32_t depth : {1u, 255u, 256u, 257u, 1000u}) {
    for (const int16_t value : {int16_t{-32768}, int16_t{32767}, int16_t{255}}) {
      OperationBuilder builder(OperationType::kBatchMatmul);
      const std::vector<int16_t> row(depth, value);
      const std::vector<int16_t> column(depth, int16_t{-32768});
      builder.input(OperationBuilder::tensor(type, {1, depth}, 1.0f), row)
          .input(OperationBuilder::tensor(type, {depth, 1}, 1.0f), column);
      builder.scalar(false).scalar(false).output(OperationBuilder::tensor(type, {}, 0x1p26f));
      ASSERT_TRUE(builder.run());
      const int64_t sum = int64_t{depth} * value * -32768;
      EXPECT_EQ(builder.result<int16_t>()[0], (sum + (1 << 25)) >> 26) << depth << " " << value;
    }
  }
}

TEST(BatchMatmulTest, BadShapes) {
  EXPECT_FALSE(product({2, 3}, false, {2, 3}, false).run());
  EXPECT_FALSE(product({2, 1, 3}, false, {3, 3, 1}, false).run());
  EXPECT_FALSE(product({3}, false, {3, 1}, false).validate());
}

}  // namespace
}  // namespace hearth::ops
