// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE, REVERSE, TILE and GATHER.
#include "ops/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

TEST(SliceTest, TakesABlock) {
  OperationBuilder builder(OperationType::kSlice);
  builder.input({2, 3}, kValues)
      .input({2}, std::vector<int32_t>{1, 1})
      .input({2}, std::vector<int32_t>{1, -1})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(5, 6));
}

TEST(SliceTest, RefusesBlocksOutside) {
  using Pair = std::pair<std::vector<int32_t>, std::vector<int32_t>>;
  for (const auto& [begin, size] :
       {Pair{{0, 2}, {1, 2}}, Pair{{-1, 0}, {1, 1}}, Pair{{3, 0}, {0, 0}}, Pair{{0, 0}, {1, -2}},
        Pair{{0, 1}, {1, INT32_MAX}}}) {
    OperationBuilder builder(OperationType::kSlice);
    builder.input({2, 3}, kValues).input({2}, begin).input({2}, size).output();
    EXPECT_FALSE(builder.run());
  }
}

OperationBuilder strided(std::vector<int32_t> begin, std::vector<int32_t> end,
                         std::vector<int32_t> stride, int32_t beginMask = 0, int32_t endMask = 0,
                         int32_t shrinkMask = 0) {
  OperationBuilder builder(OperationType::kStridedSlice);
  builder.input({2, 3}, kValues)
      .input({2}, std::move(begin))
      .input({2}, std::move(end))
      .input({2}, std::move(stride))
      .scalars({beginMask, endMask, shrinkMask})
      .output();
  return builder;
}

TEST(StridedSliceTest, WalksBothWays) {
  OperationBuilder forward = strided({0, 0}, {2, 3}, {1, 2});
  ASSERT_TRUE(forward.run());
  EXPECT_THAT(forward.result<float>(), ElementsAre(1, 3, 4, 6));
  OperationBuilder backward = strided({-1, -1}, {-3, -4}, {-1, -2});
  ASSERT_TRUE(backward.run());
  EXPECT_EQ(backward.dimensions(), (Dimensions{2, 2}));
  EXPECT_THAT(backward.result<float>(), ElementsAre(6, 4, 3, 1));
}

TEST(StridedSliceTest, MasksAndClamping) {
  OperationBuilder masked = strided({1, 1}, {1, 2}, {1, 1}, /*beginMask=*/1, /*endMask=*/3);
  ASSERT_TRUE(masked.run());
  EXPECT_THAT(masked.result<float>(), ElementsAre(2, 3, 5, 6));
  OperationBuilder clamped = strided({-100, 1}, {INT32_MAX, INT32_MAX}, {1, INT32_MAX});
  ASSERT_TRUE(clamped.run());
  EXPECT_THAT(clamped.result<float>(), ElementsAre(2, 5));
  OperationBuilder empty = strided({0, 2}, {2, 1}, {1, 1});
  ASSERT_TRUE(empty.run());
  EXPECT_EQ(empty.dimensions(), (Dimensions{2, 0}));
}

TEST(StridedSliceTest, Shrinks) {
  OperationBuilder one = strided({1, 0}, {2, 3}, {1, 1}, 0, 0, /*shrinkMask=*/1);
  ASSERT_TRUE(one.run());
  EXPECT_EQ(one.dimensions(), (Dimensions{3}));
  EXPECT_THAT(one.result<float>(), ElementsAre(4, 5, 6));
  // TFLite's x[-1].
  OperationBuilder last = strided({-1, 0}, {0, 3}, {1, 1}, 0, 0, 1);
  ASSERT_TRUE(last.run());
  EXPECT_THAT(last.result<float>(), ElementsAre(4, 5, 6));
  EXPECT_FALSE(strided({0, 0}, {2, 3}, {1, 1}, 0, 0, 1).run());
  EXPECT_FALSE(strided({2, 0}, {3, 3}, {1, 1}, 0, 0, 1).run());
  EXPECT_FALSE(strided({1, 0}, {0, 3}, {-1, 1}, 0, 0, 1).run());
}

TEST(StridedSliceTest, RefusesStrideZero) {
  EXPECT_FALSE(strided({0, 0}, {2, 3}, {0, 1}).run());
  EXPECT_TRUE(strided({0, 0}, {2, 3}, {INT32_MIN, 1}).run());
}

TEST(ReverseTest, TurnsTheNamedDimensions) {
  for (const auto& [axes, expected] :
       {std::pair(std::vector<int32_t>{1}, std::vector<float>{3, 2, 1, 6, 5, 4}),
        std::pair(std::vector<int32_t>{-2}, std::vector<float>{4, 5, 6, 1, 2, 3}),
        std::pair(std::vector<int32_t>{0, 1}, std::vector<float>{6, 5, 4, 3, 2, 1})}) {
    OperationBuilder builder(OperationType::kReverse);
    builder.input({2, 3}, kValues).input({static_cast<uint32_t>(axes.size())}, axes).output();
    ASSERT_TRUE(builder.run());
    EXPECT_EQ(builder.result<float>(), expected);
  }
  OperationBuilder twice(OperationType::kReverse);
  twice.input({2, 3}, kValues).input({2}, std::vector<int32_t>{1, -1}).output();
  EXPECT_FALSE(twice.run());
}

TEST(TileTest, Repeats) {
  OperationBuilder builder(OperationType::kTile);
  builder.input({1, 2}, std::vector<float>{1, 2}).input({2}, std::vector<int32_t>{2, 2}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 4}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  OperationBuilder huge(OperationType::kTile);
  huge.input({1, 2}, std::vector<float>{1, 2}).input({2}, std::vector<int32_t>{1, INT32_MAX});
  huge.output();
  Status status = huge.limitOutput(1 << 20).run();
  EXPECT_FALSE(status);
  OperationBuilder negative(OperationType::kTile);
  negative.input({2}, std::vector<float>{1, 2}).input({1}, std::vector<int32_t>{-1}).output();
  EXPECT_FALSE(negative.run());
}

TEST(GatherTest, PicksSlices) {
  OperationBuilder builder(OperationType::kGather);
  builder.input({2, 3}, kValues).scalar(1).input({1, 2}, std::vector<int32_t>{2, 0}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1, 2}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(3, 1, 6, 4));
  for (const int32_t index : {-1, 3, INT32_MIN, INT32_MAX}) {
    OperationBuilder outside(OperationType::kGather);
    outside.input({2, 3}, kValues).scalar(1).input({1}, std::vector<int32_t>{index}).output();
    const Status status = outside.run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kBadData);
  }
}

}  // namespace
}  // namespace hearth::ops
