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

// The expected results are TFLite's.
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

// Sums need more than 32 bits.
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

// The expected results are TFLite's.
TEST(BatchMatmulTest, EightBitsBesideSixteen) {
  const OperandType wide = OperandType::kTensorQuant16Symm;
  for (const OperandType narrow :
       {OperandType::kTensorQuant8AsymmSigned, OperandType::kTensorQuant8Symm}) {
    for (const bool isTransposed : {false, true}) {
      OperationBuilder builder(OperationType::kBatchMatmul);
      builder.input(OperationBuilder::tensor(wide, {2, 3}, 1.0f / 4096),
                    std::vector<int16_t>{-32768, -32768, 1000, 77, -5, 20000});
      if (isTransposed)
        builder.input(OperationBuilder::tensor(narrow, {2, 3}, 1.0f / 16),
                      std::vector<int8_t>{-128, -128, 127, 30, -7, 45});
      else
        builder.input(OperationBuilder::tensor(narrow, {3, 2}, 1.0f / 16),
                      std::vector<int8_t>{-128, 30, -128, -7, 127, 45});
      builder.scalar(false).scalar(isTransposed);
      builder.output(OperationBuilder::tensor(wide, {}, 1.0f / 7));
      ASSERT_TRUE(builder.run());
      EXPECT_THAT(builder.result<int16_t>(), ElementsAre(910, -76, 270, 96));
    }
  }
}

graph::Operand weightsOfColumns(uint32_t channelDim) {
  graph::Operand weights =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 2});
  weights.perChannel.channelDim = channelDim;
  weights.perChannel.scales = {0.5f, 0.25f};
  return weights;
}

TEST(BatchMatmulTest, ColumnsWithScalesOfTheirOwn) {
  const OperandType wide = OperandType::kTensorQuant16Symm;
  for (const bool isTransposed : {false, true}) {
    for (const uint32_t channelDim : {0u, 1u}) {
      OperationBuilder builder(OperationType::kBatchMatmul);
      builder.input(OperationBuilder::tensor(wide, {1, 2}, 1.0f), std::vector<int16_t>{100, 8});
      builder.input(weightsOfColumns(channelDim), isTransposed ? std::vector<int8_t>{1, 3, 2, 4}
                                                               : std::vector<int8_t>{1, 2, 3, 4});
      builder.scalar(false).scalar(isTransposed).output(OperationBuilder::tensor(wide, {}, 1.0f));
      const bool areColumns = channelDim == (isTransposed ? 0u : 1u);
      ASSERT_EQ(builder.run().has_value(), areColumns);
      // (100 + 24) / 2, (200 + 32) / 4
      if (areColumns) {
        EXPECT_THAT(builder.result<int16_t>(), ElementsAre(62, 58));
      }
    }
  }
}

TEST(BatchMatmulTest, NarrowWeightsAreSymmetricAndOnTheRight) {
  const OperandType wide = OperandType::kTensorQuant16Symm;
  const OperandType narrow = OperandType::kTensorQuant8AsymmSigned;
  const auto isTaken = [](graph::Operand left, graph::Operand right, OperandType result) {
    OperationBuilder builder(OperationType::kBatchMatmul);
    builder.input(std::move(left), std::vector<int16_t>(4));
    builder.input(std::move(right), std::vector<int16_t>(4));
    builder.scalar(false).scalar(false).output(OperationBuilder::tensor(result, {}, 1.0f));
    return builder.validate().has_value();
  };
  const auto tensor = [](OperandType type, int32_t zeroPoint) {
    return OperationBuilder::tensor(type, {2, 2}, 1.0f, zeroPoint);
  };
  EXPECT_TRUE(isTaken(tensor(wide, 0), tensor(narrow, 0), wide));
  EXPECT_FALSE(isTaken(tensor(wide, 0), tensor(narrow, 1), wide));
  EXPECT_FALSE(isTaken(tensor(narrow, 0), tensor(wide, 0), narrow));
  EXPECT_FALSE(isTaken(tensor(wide, 0), tensor(OperandType::kTensorQuant8Asymm, 0), wide));
}

TEST(BatchMatmulTest, BadShapes) {
  EXPECT_FALSE(product({2, 3}, false, {2, 3}, false).run());
  EXPECT_FALSE(product({2, 1, 3}, false, {3, 3, 1}, false).run());
  EXPECT_FALSE(product({3}, false, {3, 1}, false).validate());
}

}  // namespace
}  // namespace hearth::ops
