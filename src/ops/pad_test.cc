// SPDX-License-Identifier: Apache-2.0
// PAD, PAD_V2, MIRROR_PAD, and the block operations between space, depth and batch.
#include "ops/pad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

TEST(PadTest, QuantizedPadsWithItsZero) {
  const OperandType type = OperandType::kTensorQuant8Asymm;
  OperationBuilder builder(OperationType::kPad);
  builder.input(OperationBuilder::tensor(type, {1, 2}, 0.5f, 9), std::vector<uint8_t>{1, 2})
      .input({2, 2}, std::vector<int32_t>{0, 1, 2, 0})
      .output(OperationBuilder::tensor(type, {}, 0.5f, 9));
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 4}));
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(9, 9, 1, 2, 9, 9, 9, 9));
}

TEST(PadTest, PadV2TakesAValue) {
  OperationBuilder builder(OperationType::kPadV2);
  builder.input({2}, std::vector<float>{1, 2})
      .input({1, 2}, std::vector<int32_t>{1, 1})
      .scalar(-0.5f)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(-0.5f, 1, 2, -0.5f));
  OperationBuilder wide(OperationType::kPadV2);
  wide.input(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {1}, 1.0f, 0),
             std::vector<int8_t>{1})
      .input({1, 2}, std::vector<int32_t>{1, 1})
      .scalar(128)
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {}, 1.0f, 0));
  EXPECT_FALSE(wide.run());
}

// Rows of various lengths, with and without padding before and after each dimension.
TEST(PadTest, EachElementComesFromItsPlace) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Dimensions sizes(1 + random() % 4);
    for (uint32_t& size : sizes) size = 1 + random() % (round % 4 == 0 ? 40 : 5);
    uint64_t count = 1;
    for (const uint32_t size : sizes) count *= size;
    std::vector<int32_t> paddings;
    for (size_t i = 0; i < 2 * sizes.size(); ++i)
      paddings.push_back(random() % 2 == 0 ? 0 : static_cast<int32_t>(random() % 4));
    // Rows and paddings of whole vectors have a loop of their own.
    if (round % 3 == 0) {
      count = count / sizes.back() * 24;
      sizes.back() = 24;
      paddings.back() = 4 * static_cast<int32_t>(random() % 4);
      paddings[paddings.size() - 2] = 4 * static_cast<int32_t>(random() % 4);
    }
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    OperationBuilder builder(OperationType::kPadV2);
    builder.input(sizes, values)
        .input({static_cast<uint32_t>(sizes.size()), 2}, paddings)
        .scalar(-1.0f)
        .output();
    ASSERT_TRUE(builder.run());
    const std::vector<float> padded = builder.result<float>();
    for (size_t i = 0; i < padded.size(); ++i) {
      size_t rest = i;
      size_t from = 0;
      size_t stride = 1;
      bool isInside = true;
      for (size_t d = sizes.size(); d-- > 0;) {
        const uint32_t size = builder.dimensions()[d];
        const auto place = static_cast<int64_t>(rest % size) - paddings[2 * d];
        rest /= size;
        isInside = isInside && place >= 0 && place < sizes[d];
        from += static_cast<size_t>(place) * stride;
        stride *= sizes[d];
      }
      ASSERT_EQ(padded[i], isInside ? values[from] : -1.0f) << graph::describeDimensions(sizes);
    }
  }
}

TEST(PadTest, RefusesBadPaddings) {
  for (const std::vector<int32_t>& paddings : {std::vector<int32_t>{-1, 0}, {0, INT32_MIN}}) {
    OperationBuilder builder(OperationType::kPad);
    builder.input({2}, std::vector<float>{1, 2}).input({1, 2}, paddings).output();
    EXPECT_FALSE(builder.run());
  }
  OperationBuilder huge(OperationType::kPad);
  huge.input({2, 2}, std::vector<float>(4))
      .input({2, 2}, std::vector<int32_t>{INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX})
      .output();
  EXPECT_FALSE(huge.limitOutput(1 << 20).run());
}

TEST(MirrorPadTest, ReflectsWithAndWithoutTheBorder) {
  for (const auto& [mode, expected] :
       {std::pair(0, std::vector<float>{6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5}),
        std::pair(1, std::vector<float>{2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 5, 4, 4, 5, 6, 6})}) {
    OperationBuilder builder(OperationType::kMirrorPad);
    builder.input({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})
        .input({2, 2}, std::vector<int32_t>{1, 0, 2, 1})
        .scalar(mode)
        .output();
    ASSERT_TRUE(builder.run());
    EXPECT_EQ(builder.dimensions(), (Dimensions{3, 6}));
    EXPECT_EQ(builder.result<float>(), expected);
  }
  for (const auto& [mode, padding] :
       {std::pair(0, 3), std::pair(1, 4), std::pair(2, 0), std::pair(0, -1)}) {
    OperationBuilder builder(OperationType::kMirrorPad);
    builder.input({3}, std::vector<float>{1, 2, 3})
        .input({1, 2}, std::vector<int32_t>{padding, 0})
        .scalar(mode)
        .output();
    EXPECT_FALSE(builder.run()) << mode << " " << padding;
  }
}

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(SpaceToDepthTest, MovesBlocksIntoChannels) {
  OperationBuilder builder(OperationType::kSpaceToDepth);
  builder.input({1, 2, 4, 1}, counted(8)).scalar(2).output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 1, 2, 4}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(SpaceToDepthTest, DepthToSpaceUndoesIt) {
  for (const bool isNchw : {false, true}) {
    OperationBuilder forth(OperationType::kSpaceToDepth);
    forth.input({2, 4, 4, 4}, counted(128)).scalar(2).scalar(isNchw).output();
    ASSERT_TRUE(forth.run());
    OperationBuilder back(OperationType::kDepthToSpace);
    back.input(forth.dimensions(), forth.result<float>()).scalar(2).scalar(isNchw).output();
    ASSERT_TRUE(back.run());
    EXPECT_EQ(back.dimensions(), (Dimensions{2, 4, 4, 4}));
    EXPECT_EQ(back.result<float>(), counted(128));
  }
}

TEST(SpaceToDepthTest, RefusesBlocksThatDoNotDivide) {
  for (const int32_t block : {0, -1, 3, INT32_MAX, INT32_MIN}) {
    for (const OperationType type : {OperationType::kSpaceToDepth, OperationType::kDepthToSpace}) {
      OperationBuilder builder(type);
      builder.input({1, 2, 4, 4}, counted(32)).scalar(block).output();
      EXPECT_FALSE(builder.run()) << block;
    }
  }
}

TEST(SpaceToBatchTest, PadsAndMovesBlocksIntoBatches) {
  OperationBuilder builder(OperationType::kSpaceToBatchNd);
  builder.input({1, 1, 3, 1}, counted(3))
      .input({2}, std::vector<int32_t>{1, 2})
      .input({2, 2}, std::vector<int32_t>{0, 0, 1, 0})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(0, 2, 1, 3));
}

TEST(SpaceToBatchTest, BatchToSpaceUndoesIt) {
  for (const bool isNchw : {false, true}) {
    OperationBuilder forth(OperationType::kSpaceToBatchNd);
    forth.input({1, 4, 4, 4}, counted(64))
        .input({2}, std::vector<int32_t>{2, 4})
        .input({2, 2}, std::vector<int32_t>{0, 0, 0, 0})
        .scalar(isNchw)
        .output();
    ASSERT_TRUE(forth.run());
    OperationBuilder back(OperationType::kBatchToSpaceNd);
    back.input(forth.dimensions(), forth.result<float>())
        .input({2}, std::vector<int32_t>{2, 4})
        .scalar(isNchw)
        .output();
    ASSERT_TRUE(back.run());
    EXPECT_EQ(back.result<float>(), counted(64));
  }
}

TEST(SpaceToBatchTest, TakesOneSpatialDimension) {
  OperationBuilder builder(OperationType::kSpaceToBatchNd);
  builder.input({1, 4, 1}, counted(4))
      .input({1}, std::vector<int32_t>{2})
      .input({1, 2}, std::vector<int32_t>{0, 0})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 3, 2, 4));
}

TEST(SpaceToBatchTest, RefusesBlocksThatDoNotDivide) {
  for (const int32_t block : {0, -1, 3, INT32_MIN}) {
    OperationBuilder builder(OperationType::kSpaceToBatchNd);
    builder.input({1, 4, 4, 1}, counted(16))
        .input({2}, std::vector<int32_t>{block, 1})
        .input({2, 2}, std::vector<int32_t>{0, 0, 0, 0})
        .output();
    EXPECT_FALSE(builder.run());
  }
}

}  // namespace
}  // namespace hearth::ops
