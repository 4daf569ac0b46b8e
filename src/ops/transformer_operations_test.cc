// SPDX-License-Identifier: Apache-2.0
// The operations of the extension that language and diffusion models need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;

graph::Operand booleans(Dimensions dimensions) {
  return OperationBuilder::tensor(kBool8, std::move(dimensions));
}

TEST(GeluTest, BothForms) {
  for (const bool isApproximate : {false, true}) {
    OperationBuilder builder(OperationType::kGelu);
    builder.input({4}, std::vector<float>{-100, -1, 0, 2}).scalar(isApproximate).output();
    ASSERT_TRUE(builder.run());
    const float minusOne = isApproximate ? -0.158808f : -0.158655f;
    const float two = isApproximate ? 1.954598f : 1.954500f;
    EXPECT_THAT(
        builder.result<float>(),
        ElementsAre(FloatNear(0, 1e-6f), FloatNear(minusOne, 1e-6f), 0, FloatNear(two, 1e-6f)));
  }
}

TEST(CosTest, LargeAngles) {
  OperationBuilder builder(OperationType::kCos);
  builder.input({3}, std::vector<float>{0, 1, 511}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, std::cos(1.0f), std::cos(511.0f)));
}

TEST(TruncatedDivTest, CutsTowardsZero) {
  const auto divide = [](OperationType type) {
    OperationBuilder builder(type);
    builder.input({5}, std::vector<int32_t>{7, -7, 7, INT32_MIN, 3})
        .input({5}, std::vector<int32_t>{2, 2, -2, -1, 0})
        .scalar(0)
        .output(kInt32);
    EXPECT_TRUE(builder.run());
    return builder.result<int32_t>();
  };
  EXPECT_THAT(divide(OperationType::kTruncatedDiv), ElementsAre(3, -3, -3, INT32_MIN, 0));
  EXPECT_THAT(divide(OperationType::kDiv), ElementsAre(3, -4, -4, INT32_MIN, 0));
}

TEST(SelectV2Test, BroadcastsAllInputs) {
  OperationBuilder builder(OperationType::kSelectV2);
  builder.input(booleans({2, 1}), std::vector<uint8_t>{1, 0})
      .input({3}, std::vector<float>{1, 2, 3})
      .input({1, 1, 1}, std::vector<float>{9})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 3}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 3, 9, 9, 9));
  OperationBuilder bad(OperationType::kSelectV2);
  bad.input(booleans({2}), std::vector<uint8_t>{1, 0})
      .input({3}, std::vector<float>{1, 2, 3})
      .input({1}, std::vector<float>{9})
      .output();
  EXPECT_FALSE(bad.run());
}

TEST(BroadcastToTest, RepeatsAndRefuses) {
  const auto broadcast = [](Dimensions from, std::vector<int32_t> to) {
    OperationBuilder builder(OperationType::kBroadcastTo);
    size_t count = 1;
    for (const uint32_t dimension : from) count *= dimension;
    builder.input(std::move(from), counting(count, 0))
        .input({static_cast<uint32_t>(to.size())}, to)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(broadcast({2, 1}, {2, 2, 2}), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(broadcast({2}, {2}), ElementsAre(0, 1));
  EXPECT_THAT(broadcast({2}, {3}), ElementsAre());
  EXPECT_THAT(broadcast({2}, {1}), ElementsAre());
  EXPECT_THAT(broadcast({2, 1}, {2}), ElementsAre());
  EXPECT_THAT(broadcast({1}, {-1}), ElementsAre());
}

TEST(DynamicUpdateSliceTest, MovesTheUpdateInside) {
  const auto update = [](std::vector<int32_t> begin) {
    OperationBuilder builder(OperationType::kDynamicUpdateSlice);
    builder.input({2, 3}, std::vector<float>(6))
        .input({1, 2}, std::vector<float>{1, 2})
        .input({2}, begin)
        .output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  EXPECT_THAT(update({1, 1}), ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT(update({-5, 100}), ElementsAre(0, 1, 2, 0, 0, 0));
  OperationBuilder large(OperationType::kDynamicUpdateSlice);
  large.input({2}, std::vector<float>(2))
      .input({3}, std::vector<float>(3))
      .input({1}, std::vector<int32_t>{0})
      .output();
  EXPECT_FALSE(large.run());
}

TEST(DynamicUpdateSliceTest, ARowOutsideIsAnError) {
  const auto update = [](Dimensions shape, std::vector<int32_t> begin, bool isRow = true) {
    uint64_t count = 1;
    for (const uint32_t dimension : shape) count *= dimension;
    OperationBuilder builder(OperationType::kDynamicUpdateSlice);
    builder.input({2, 3}, std::vector<float>(6))
        .input(std::move(shape), counting(count, 1))
        .input({2}, std::move(begin))
        .scalar(isRow)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(update({1, 3}, {0, 0}), ElementsAre(1, 2, 3, 0, 0, 0));
  EXPECT_THAT(update({1, 3}, {1, 0}), ElementsAre(0, 0, 0, 1, 2, 3));
  for (const int32_t outside : {-1 << 31, -1, 2, 0x7fffffff})
    EXPECT_THAT(update({1, 3}, {outside, 0}), IsEmpty()) << outside;
  EXPECT_THAT(update({1, 3}, {0, 1}), IsEmpty());
  EXPECT_THAT(update({1, 2}, {0, 0}), IsEmpty());
  EXPECT_THAT(update({2, 3}, {0, 0}), IsEmpty());
  EXPECT_THAT(update({1, 3}, {5, 0}, false), ElementsAre(0, 0, 0, 1, 2, 3));
}

TEST(GatherNdTest, SlicesAndElements) {
  const auto gather = [](Dimensions shape, std::vector<int32_t> indices) {
    OperationBuilder builder(OperationType::kGatherNd);
    builder.input({2, 3}, counting(6, 0)).input(std::move(shape), std::move(indices)).output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(gather({1, 1}, {1}), ElementsAre(3, 4, 5));
  EXPECT_THAT(gather({2, 2}, {1, 0, 0, 2}), ElementsAre(3, 2));
  EXPECT_THAT(gather({1}, {0}), ElementsAre(0, 1, 2));
  EXPECT_THAT(gather({1, 2}, {1, 3}), ElementsAre());
  EXPECT_THAT(gather({1, 2}, {-1, 0}), ElementsAre());
  EXPECT_THAT(gather({1, 3}, {0, 0, 0}), ElementsAre());
}

TEST(EmbeddingLookupTest, RowsOfEightAndFourBits) {
  const auto lookUp = [](graph::Operand table, std::vector<uint8_t> bytes,
                         std::vector<float> blockScales) {
    OperationBuilder builder(OperationType::kEmbeddingLookup);
    builder.input({2}, std::vector<int32_t>{1, 0}).input(std::move(table), std::move(bytes));
    if (!blockScales.empty()) builder.input({2, 2}, std::move(blockScales));
    builder.output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  graph::Operand rows = OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 2});
  rows.perChannel = {.channelDim = 0, .scales = {0.5f, 2.0f}};
  EXPECT_THAT(lookUp(rows, {1, 0xFF, 3, 4}, {}), ElementsAre(6, 8, 0.5f, -0.5f));
  const graph::Operand blocks = OperationBuilder::tensor(OperandType::kTensorInt4, {2, 2});
  EXPECT_THAT(lookUp(blocks, {0x8F, 0x21}, {1, 2, 4, 8}), ElementsAre(4, 16, -1, -16));
}

TEST(RmsNormTest, LastDimension) {
  OperationBuilder builder(OperationType::kRmsNorm);
  builder.input({2, 2}, std::vector<float>{3, 4, 0, 0})
      .input({2}, std::vector<float>{1, 2})
      .scalar(12.5f)
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), Pointwise(FloatNear(1e-6f), {0.6f, 1.6f, 0.0f, 0.0f}));
  OperationBuilder bad(OperationType::kRmsNorm);
  bad.input({2, 2}, std::vector<float>(4)).input({3}, std::vector<float>(3)).scalar(1.0f).output();
  EXPECT_FALSE(bad.run());
}

TEST(GroupNormTest, ChannelsInAnyDimension) {
  // Groups {1, 3, 5, 7} and {2, 2, 2, 2} in both layouts.
  const auto normalize = [](Dimensions shape, std::vector<float> values, int32_t axis) {
    OperationBuilder builder(OperationType::kGroupNorm);
    builder.input(std::move(shape), std::move(values))
        .input({4}, std::vector<float>{1, 1, 1, 1})
        .input({4}, std::vector<float>{0, 10, 20, 30})
        .scalar(4.0f)
        .scalar(2)
        .scalar(axis)
        .output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  EXPECT_THAT(normalize({1, 2, 4}, {1, 3, 2, 2, 5, 7, 2, 2}, -1),
              Pointwise(FloatNear(1e-5f),
                        {-1.0f, 10 - 1 / 3.0f, 20.0f, 30.0f, 1 / 3.0f, 11.0f, 20.0f, 30.0f}));
  EXPECT_THAT(normalize({1, 4, 2}, {1, 5, 3, 7, 2, 2, 2, 2}, 1),
              Pointwise(FloatNear(1e-5f),
                        {-1.0f, 1 / 3.0f, 10 - 1 / 3.0f, 11.0f, 20.0f, 20.0f, 30.0f, 30.0f}));
}

OperationBuilder attention(std::vector<float> mask, float logitCap) {
  OperationBuilder builder(OperationType::kScaledDotProductAttention);
  // Two heads share the keys e0 and e1; the queries are 2 * e0 and 2 * e1.
  builder.input({1, 1, 2, 2}, std::vector<float>{2, 0, 0, 2})
      .input({1, 2, 1, 2}, std::vector<float>{1, 0, 0, 1})
      .input({1, 2, 1, 1}, std::vector<float>{1, -1});
  if (mask.empty())
    builder.omitted(kFloat);
  else
    builder.input({1, 1, 1, 2}, std::move(mask));
  builder.scalar(0.5f).scalar(logitCap).output();
  return builder;
}

TEST(ScaledDotProductAttentionTest, SharesKeysAmongHeads) {
  OperationBuilder plain = attention({}, 0.0f);
  ASSERT_TRUE(plain.run());
  EXPECT_EQ(plain.dimensions(), (Dimensions{1, 1, 2, 1}));
  const float whole = std::tanh(0.5f);  // soft-max of 1 and 0, values 1 and -1
  EXPECT_THAT(plain.result<float>(), Pointwise(FloatNear(1e-6f), {whole, -whole}));

  OperationBuilder masked = attention({0.0f, -1e30f}, 0.0f);
  ASSERT_TRUE(masked.run());
  EXPECT_THAT(masked.result<float>(), ElementsAre(1, 1));

  OperationBuilder capped = attention({}, 0.5f);
  ASSERT_TRUE(capped.run());
  const float part = std::tanh(0.25f * std::tanh(2.0f));
  EXPECT_THAT(capped.result<float>(), Pointwise(FloatNear(1e-6f), {part, -part}));
}

TEST(ScaledDotProductAttentionTest, RefusesShapesThatDoNotFit) {
  const auto run = [](Dimensions keys, Dimensions values, Dimensions mask) {
    const auto count = [](const Dimensions& dimensions) {
      size_t product = 1;
      for (const uint32_t dimension : dimensions) product *= dimension;
      return counting(product, 0);
    };
    OperationBuilder builder(OperationType::kScaledDotProductAttention);
    builder.input({1, 3, 4, 2}, counting(24, 0))
        .input(keys, count(keys))
        .input(values, count(values))
        .input(mask, count(mask))
        .scalar(1.0f)
        .scalar(0.0f)
        .output();
    return builder.run();
  };
  EXPECT_TRUE(run({1, 5, 2, 2}, {1, 5, 2, 1}, {1, 1, 3, 5}));
  EXPECT_FALSE(run({1, 5, 3, 2}, {1, 5, 3, 2}, {1, 1, 3, 5}));
  EXPECT_FALSE(run({1, 5, 2, 2}, {1, 4, 2, 2}, {1, 1, 3, 5}));
  EXPECT_FALSE(run({1, 5, 2, 3}, {1, 5, 2, 2}, {1, 1, 3, 5}));
  EXPECT_FALSE(run({1, 5, 2, 2}, {1, 5, 2, 2}, {1, 1, 3, 4}));
}

}  // namespace
}  // namespace hearth::ops
