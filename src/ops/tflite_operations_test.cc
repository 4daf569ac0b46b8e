// SPDX-License-Identifier: Apache-2.0
// Operations of .tflite files that are neither NNAPI's nor in transformer_operations_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

template <typename T>
std::vector<T> applyToBoth(OperationType type, std::vector<T> a, std::vector<T> b) {
  OperationBuilder builder(type);
  const Dimensions dimensions = {static_cast<uint32_t>(a.size())};
  builder.input(dimensions, std::move(a)).input(dimensions, std::move(b));
  if (type == OperationType::kTruncatedDiv) builder.scalar(0);
  builder.output(std::is_same_v<T, float> ? kFloat : kInt32);
  EXPECT_TRUE(builder.run());
  return builder.template result<T>();
}

TEST(TfliteUnaryTest, Floats) {
  EXPECT_THAT(apply(OperationType::kCeil, {-1.5f, 0.2f, 2}), ElementsAre(-1, 1, 2));
  EXPECT_THAT(apply(OperationType::kRound, {0.5f, 1.5f, -2.5f, 0.6f}), ElementsAre(0, 2, -2, 1));
  EXPECT_THAT(apply(OperationType::kSign, {-3, 0, 0.1f}), ElementsAre(-1, 0, 1));
  EXPECT_THAT(apply(OperationType::kRelu0To1, {-3, 0.5f, 7}), ElementsAre(0, 0.5f, 1));
}

TEST(TfliteUnaryTest, SignOfIntegers) {
  OperationBuilder builder(OperationType::kSign);
  builder.input({3}, std::vector<int32_t>{INT32_MIN, 0, 5}).output(kInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(-1, 0, 1));
}

TEST(TfliteBinaryTest, FloorDivAndMod) {
  EXPECT_THAT(applyToBoth<int32_t>(OperationType::kFloorDiv, {7, -7, 7, 5}, {2, 2, -2, 0}),
              ElementsAre(3, -4, -4, 0));
  EXPECT_THAT(
      applyToBoth<int32_t>(OperationType::kFloorMod, {7, -7, 7, INT32_MIN, 5}, {3, 3, -3, -1, 0}),
      ElementsAre(1, 2, -2, 0, 0));
  EXPECT_THAT(applyToBoth<float>(OperationType::kFloorDiv, {7.5f, -7.5f}, {2, 2}),
              ElementsAre(3, -4));
  EXPECT_THAT(applyToBoth<float>(OperationType::kFloorMod, {7.5f, -7.5f}, {2, 2}),
              ElementsAre(1.5f, 0.5f));
  EXPECT_THAT(
      applyToBoth<float>(OperationType::kAtan2, {1, -1, 0}, {1, -1, -1}),
      ElementsAre(std::atan2(1.0f, 1.0f), std::atan2(-1.0f, -1.0f), std::atan2(0.0f, -1.0f)));
}

TEST(CumsumTest, ExclusiveAndReverse) {
  const auto run = [](int32_t axis, bool exclusive, bool reverse) {
    OperationBuilder builder(OperationType::kCumsum);
    builder.input({2, 3}, counting(6)).scalar(axis).scalar(exclusive).scalar(reverse).output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run(1, false, false), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(run(-1, true, false), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(run(1, true, true), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_THAT(run(0, false, true), ElementsAre(5, 7, 9, 4, 5, 6));
  EXPECT_THAT(run(2, false, false), ElementsAre());
}

TEST(WhereTest, IndicesInOrder) {
  OperationBuilder builder(OperationType::kWhere);
  builder.input(OperationBuilder::tensor(kBool8, {2, 3}), std::vector<uint8_t>{0, 1, 0, 1, 0, 1})
      .output(kInt64);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{3, 2}));
  EXPECT_THAT(builder.result<int64_t>(), ElementsAre(0, 1, 1, 0, 1, 2));
}

TEST(RangeTest, StepsOfBothSigns) {
  const auto run = [](std::vector<int32_t> limits) {
    OperationBuilder builder(OperationType::kRange);
    for (const int32_t limit : limits) builder.input({1}, std::vector<int32_t>{limit});
    builder.output(kInt32);
    return builder.run() ? builder.result<int32_t>() : std::vector<int32_t>{-99};
  };
  EXPECT_THAT(run({1, 8, 3}), ElementsAre(1, 4, 7));
  EXPECT_THAT(run({5, 0, -2}), ElementsAre(5, 3, 1));
  EXPECT_THAT(run({5, 5, 1}), ElementsAre());
  EXPECT_THAT(run({INT32_MIN, INT32_MAX, 1 << 30}), ElementsAre(INT32_MIN, -(1 << 30), 0, 1 << 30));
  EXPECT_THAT(run({5, 0, 1}), ElementsAre(-99));
  EXPECT_THAT(run({0, 5, 0}), ElementsAre(-99));
}

TEST(ShapeTest, BothIntegerTypes) {
  OperationBuilder narrow(OperationType::kShape);
  narrow.input({2, 3}, counting(6)).output(kInt32);
  ASSERT_TRUE(narrow.run());
  EXPECT_THAT(narrow.result<int32_t>(), ElementsAre(2, 3));
  OperationBuilder wide(OperationType::kShape);
  wide.input({1, 1, 4}, counting(4)).output(kInt64);
  ASSERT_TRUE(wide.run());
  EXPECT_THAT(wide.result<int64_t>(), ElementsAre(1, 1, 4));
}

TEST(ZerosLikeTest, TypeAndShape) {
  OperationBuilder builder(OperationType::kZerosLike);
  builder.input({2, 1}, std::vector<int32_t>{7, 8}).output(kInt32);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{2, 1}));
  EXPECT_THAT(builder.result<int32_t>(), ElementsAre(0, 0));
}

TEST(OneHotTest, AnyAxis) {
  const auto run = [](int32_t axis) {
    OperationBuilder builder(OperationType::kOneHot);
    builder.input({3}, std::vector<int32_t>{1, -1, 0})
        .input({1}, std::vector<int32_t>{2})
        .input({1}, std::vector<float>{5})
        .input({1}, std::vector<float>{-5})
        .scalar(axis)
        .output();
    EXPECT_TRUE(builder.run());
    return builder.result<float>();
  };
  EXPECT_THAT(run(-1), ElementsAre(-5, 5, -5, -5, 5, -5));
  EXPECT_THAT(run(0), ElementsAre(-5, -5, 5, 5, -5, -5));
}

TEST(ScatterNdTest, AddsUp) {
  const auto run = [](std::vector<int32_t> indices, std::vector<int32_t> shape) {
    OperationBuilder builder(OperationType::kScatterNd);
    builder.input({3, 1}, std::move(indices))
        .input({3, 2}, counting(6))
        .input({static_cast<uint32_t>(shape.size())}, shape)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run({2, 0, 2}, {3, 2}), ElementsAre(3, 4, 0, 0, 6, 8));
  EXPECT_THAT(run({3, 0, 2}, {3, 2}), ElementsAre());
  EXPECT_THAT(run({-1, 0, 2}, {3, 2}), ElementsAre());
  EXPECT_THAT(run({0, 0, 0}, {3, 3}), ElementsAre());
  EXPECT_THAT(run({0, 0, 0}, {3, -2}), ElementsAre());
}

TEST(SegmentSumTest, EmptySegmentsAreZero) {
  const auto run = [](std::vector<int32_t> segments) {
    OperationBuilder builder(OperationType::kSegmentSum);
    builder.input({3, 2}, counting(6))
        .input({static_cast<uint32_t>(segments.size())}, segments)
        .limitOutput(1000)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run({0, 0, 2}), ElementsAre(4, 6, 0, 0, 5, 6));
  EXPECT_THAT(run({0, 2, 1}), ElementsAre());
  EXPECT_THAT(run({-1, 0, 1}), ElementsAre());
  EXPECT_THAT(run({0, 1}), ElementsAre());
}

std::vector<float> runUnsorted(OperationType type, std::vector<int32_t> segments, int32_t count,
                               Dimensions shape = {}) {
  OperationBuilder builder(type);
  if (shape.empty()) shape = {static_cast<uint32_t>(segments.size())};
  builder.input({2, 2, 2}, counting(8))
      .input(shape, std::move(segments))
      .input({1}, std::vector<int32_t>{count})
      .limitOutput(1000)
      .output();
  return builder.run() ? builder.result<float>() : std::vector<float>();
}

TEST(GatherTest, SharedDimensions) {
  const auto run = [](int32_t axis, int32_t shared, std::vector<int32_t> indices) {
    OperationBuilder builder(OperationType::kGather);
    builder.input({2, 2, 2}, counting(8))
        .scalar(axis)
        .input({2, static_cast<uint32_t>(indices.size() / 2)}, indices)
        .scalar(shared)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run(1, 1, {1, 0}), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(run(2, 1, {1, 0}), ElementsAre(2, 4, 5, 7));
  EXPECT_THAT(run(1, -1, {1, 0}), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(run(0, 1, {1, 0}), ElementsAre());
  EXPECT_THAT(run(2, 3, {1, 0}), ElementsAre());
  EXPECT_THAT(run(2, INT32_MIN, {1, 0}), ElementsAre());
  EXPECT_THAT(run(1, 1, {1, 2}), ElementsAre());
}

TEST(UnsortedSegmentTest, CombinesRows) {
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_THAT(runUnsorted(OperationType::kUnsortedSegmentSum, {1, 1}, 2),
              ElementsAre(0, 0, 0, 0, 6, 8, 10, 12));
  EXPECT_THAT(runUnsorted(OperationType::kUnsortedSegmentProd, {1, -1}, 2),
              ElementsAre(1, 1, 1, 1, 1, 2, 3, 4));
  EXPECT_THAT(runUnsorted(OperationType::kUnsortedSegmentMax, {0, 2, 0, 0}, 3, {2, 2}),
              ElementsAre(7, 8, -kMost, -kMost, 3, 4));
  EXPECT_THAT(runUnsorted(OperationType::kUnsortedSegmentMin, {2, 0, 2, 2}, 3, {2, 2}),
              ElementsAre(3, 4, kMost, kMost, 1, 2));
}

TEST(UnsortedSegmentTest, IntegersWrap) {
  for (const auto& [type, value] : {std::pair(OperationType::kUnsortedSegmentSum, -2),
                                    std::pair(OperationType::kUnsortedSegmentProd, 1)}) {
    OperationBuilder builder(type);
    builder.input({2}, std::vector<int32_t>{INT32_MAX, INT32_MAX})
        .input({2}, std::vector<int32_t>{0, 0})
        .input({1}, std::vector<int32_t>{1})
        .output(kInt32);
    ASSERT_TRUE(builder.run());
    EXPECT_THAT(builder.result<int32_t>(), ElementsAre(value));
  }
}

TEST(UnsortedSegmentTest, RefusesWhatDoesNotFit) {
  constexpr OperationType kType = OperationType::kUnsortedSegmentSum;
  EXPECT_THAT(runUnsorted(kType, {0, 2}, 2), ElementsAre());
  EXPECT_THAT(runUnsorted(kType, {0, INT32_MAX}, 2), ElementsAre());
  EXPECT_THAT(runUnsorted(kType, {0, 1, 1}, 2), ElementsAre());
  EXPECT_THAT(runUnsorted(kType, {0, 1}, -1), ElementsAre());
  EXPECT_THAT(runUnsorted(kType, {0, 1, 0}, 2, {1, 3}), ElementsAre());
}

TEST(BroadcastArgsTest, JoinsShapes) {
  const auto run = [](std::vector<int32_t> a, std::vector<int32_t> b) {
    OperationBuilder builder(OperationType::kBroadcastArgs);
    builder.input({static_cast<uint32_t>(a.size())}, a)
        .input({static_cast<uint32_t>(b.size())}, b)
        .output(kInt32);
    return builder.run() ? builder.result<int32_t>() : std::vector<int32_t>();
  };
  EXPECT_THAT(run({2, 1, 3}, {4, 1}), ElementsAre(2, 4, 3));
  EXPECT_THAT(run({2}, {3}), ElementsAre());
}

TEST(ReverseSequenceTest, BeginningsOnly) {
  const auto run = [](int32_t sequence, int32_t batch, std::vector<int32_t> lengths) {
    OperationBuilder builder(OperationType::kReverseSequence);
    builder.input({2, 3}, counting(6))
        .input({static_cast<uint32_t>(lengths.size())}, lengths)
        .scalar(sequence)
        .scalar(batch)
        .output();
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run(1, 0, {2, 3}), ElementsAre(2, 1, 3, 6, 5, 4));
  EXPECT_THAT(run(0, 1, {2, 0, 1}), ElementsAre(4, 2, 3, 1, 5, 6));
  EXPECT_THAT(run(1, 0, {2, 4}), ElementsAre());
  EXPECT_THAT(run(1, 1, {2, 3}), ElementsAre());
  EXPECT_THAT(run(1, 0, {2}), ElementsAre());
}

// Empty tensors with large dimensions: no loop may run over the other dimensions.
TEST(TfliteOperationsTest, EmptyTensorsTakeNoTime) {
  constexpr uint32_t kMany = UINT32_MAX;
  const auto run = [](OperationBuilder& builder) {
    builder.inputShapesAreKnown().output();
    return builder.run().has_value();
  };
  OperationBuilder gather(OperationType::kGatherNd);
  gather.input({0}, std::vector<float>()).input({kMany, 0}, std::vector<int32_t>());
  EXPECT_TRUE(run(gather));
  OperationBuilder sums(OperationType::kCumsum);
  sums.input({kMany, 3, 0}, std::vector<float>()).scalar(1).scalar(false).scalar(false);
  EXPECT_TRUE(run(sums));
  OperationBuilder reverse(OperationType::kReverseSequence);
  reverse.input({kMany, 1, 0}, std::vector<float>()).input({1}, std::vector<int32_t>{0});
  reverse.scalar(0).scalar(1);
  EXPECT_TRUE(run(reverse));
  OperationBuilder norm(OperationType::kGroupNorm);
  norm.input({kMany, 0}, std::vector<float>()).omitted(kFloat).omitted(kFloat);
  norm.scalar(1.0f).scalar(INT32_MAX).scalar(1);
  EXPECT_TRUE(run(norm));
  OperationBuilder attention(OperationType::kScaledDotProductAttention);
  attention.input({1, kMany, 4, 0}, std::vector<float>())
      .input({1, 1, 1, 0}, std::vector<float>())
      .input({1, 1, 1, 0}, std::vector<float>())
      .omitted(kFloat);
  attention.scalar(1.0f).scalar(0.0f);
  EXPECT_TRUE(run(attention));
  OperationBuilder rows(OperationType::kGather);
  rows.input({kMany, 3, 0}, std::vector<float>()).scalar(1).input({1}, std::vector<int32_t>{0});
  EXPECT_TRUE(run(rows));
  for (const OperationType type :
       {OperationType::kResizeBilinear, OperationType::kResizeNearestNeighbor}) {
    OperationBuilder resize(type);
    resize.input({1, 2, 2, 0}, std::vector<float>());
    resize.input({1}, std::vector<int32_t>{INT32_MAX}).input({1}, std::vector<int32_t>{2});
    resize.scalar(false);
    EXPECT_TRUE(run(resize));
  }
  OperationBuilder largest(OperationType::kTopkV2);
  largest.input({0, kMany}, std::vector<float>()).input({1}, std::vector<int32_t>{INT32_MAX});
  largest.output(kFloat);
  largest.inputShapesAreKnown().output(kInt32);
  EXPECT_TRUE(largest.run());
}

// Many classes without anchors.
TEST(TfliteOperationsTest, NoAnchorsTakeNoTime) {
  for (const bool isRegular : {false, true}) {
    OperationBuilder detector(OperationType::kTfliteDetectionPostprocess);
    detector.input({1, 0, 4}, std::vector<float>())
        .input({1, 0, INT32_MAX}, std::vector<float>())
        .input({0, 4}, std::vector<float>())
        .scalars({2, 1, 100})
        .scalar(isRegular)
        .scalar(0.2f)
        .scalar(0.5f)
        .scalar(INT32_MAX);
    for (int i = 0; i < 4; ++i) detector.scalar(1.0f);
    for (int i = 0; i < 4; ++i) detector.output();
    ASSERT_TRUE(detector.inputShapesAreKnown().run());
    EXPECT_THAT(detector.result<float>(2), ElementsAre(0, 0));
    EXPECT_THAT(detector.result<float>(3), ElementsAre(0));
  }
}

// TFLite passes the count as a tensor.
TEST(TopkTest, CountInATensor) {
  const auto run = [](std::vector<int32_t> count) {
    OperationBuilder builder(OperationType::kTopkV2);
    const Dimensions shape = {static_cast<uint32_t>(count.size())};
    builder.input({2, 3}, std::vector<float>{3, 1, 2, 4, 6, 5})
        .input(shape, std::move(count))
        .output(kFloat)
        .output(kInt32);
    return builder.run() ? builder.result<float>() : std::vector<float>();
  };
  EXPECT_THAT(run({2}), ElementsAre(3, 2, 6, 5));
  for (const int32_t count : {INT32_MIN, -1, 0, 4, INT32_MAX})
    EXPECT_THAT(run({count}), ElementsAre());
  EXPECT_THAT(run({1, 1}), ElementsAre());
}

TEST(SixteenBitActivationsTest, FullyConnected) {
  const OperandType int16 = OperandType::kTensorQuant16Symm;
  graph::Operand weights =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 2});
  weights.perChannel = {.channelDim = 0, .scales = {0.5f, 2.0f}};
  OperationBuilder builder(OperationType::kFullyConnected);
  builder.input(OperationBuilder::tensor(int16, {1, 2}, 0.25f), std::vector<int16_t>{400, -8000})
      .input(weights, std::vector<int8_t>{1, 2, -3, 4})
      .input(OperationBuilder::tensor(kInt64, {2}), std::vector<int64_t>{8, -8})
      .scalar(0)
      .output(OperationBuilder::tensor(int16, {}, 0.5f));
  ASSERT_TRUE(builder.run());
  // 0.125 * (400 - 16000 + 8) and 0.5 * (-1200 - 32000 - 8), in steps of 0.5.
  EXPECT_THAT(builder.result<int16_t>(), ElementsAre(-3898, -32768));
}

template <typename T>
std::vector<T> bitwise(OperationType type, OperandType operand, std::vector<T> a,
                       std::vector<T> b) {
  OperationBuilder builder(type);
  const auto count = static_cast<uint32_t>(a.size());
  builder.input(OperationBuilder::tensor(operand, {count}, operand == kUint8 ? 1.0f : 0.0f),
                std::move(a));
  builder.input(OperationBuilder::tensor(operand, {1}, operand == kUint8 ? 1.0f : 0.0f),
                std::move(b));
  builder.output(OperationBuilder::tensor(operand, {}, operand == kUint8 ? 1.0f : 0.0f));
  return builder.run() ? builder.result<T>() : std::vector<T>();
}

TEST(BitwiseTest, Xor) {
  constexpr OperationType kType = OperationType::kBitwiseXor;
  EXPECT_THAT(bitwise<int32_t>(kType, kInt32, {5, -1, 0}, {3}), ElementsAre(6, -4, 3));
  EXPECT_THAT(bitwise<uint8_t>(kType, kUint8, {255, 0}, {15}), ElementsAre(240, 15));
}

TEST(BitwiseTest, RightShift) {
  constexpr OperationType kType = OperationType::kRightShift;
  EXPECT_THAT(bitwise<int32_t>(kType, kInt32, {5, -5, INT32_MIN}, {1}),
              ElementsAre(2, -3, INT32_MIN / 2));
  EXPECT_THAT(bitwise<int32_t>(kType, kInt32, {5, -5}, {-7}), ElementsAre(5, -5));
  EXPECT_THAT(bitwise<int32_t>(kType, kInt32, {5, -5}, {INT32_MAX}), ElementsAre(0, -1));
  EXPECT_THAT(bitwise<uint8_t>(kType, kUint8, {200, 3}, {7}), ElementsAre(1, 0));
  EXPECT_THAT(bitwise<uint32_t>(kType, OperandType::kTensorUint32, {UINT32_MAX, 1}, {UINT32_MAX}),
              ElementsAre(1u, 0u));
}

TEST(BitcastTest, ShapesFollowTheSizes) {
  OperationBuilder same(OperationType::kBitcast);
  same.input({2}, std::vector<float>{1, -2}).output(kInt32);
  ASSERT_TRUE(same.run());
  EXPECT_THAT(same.result<int32_t>(), ElementsAre(0x3f800000, static_cast<int32_t>(0xc0000000)));
  OperationBuilder parts(OperationType::kBitcast);
  parts.input({1}, std::vector<int32_t>{0x01020304})
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f));
  ASSERT_TRUE(parts.run());
  EXPECT_EQ(parts.dimensions(), (Dimensions{1, 4}));
  EXPECT_THAT(parts.result<uint8_t>(), ElementsAre(4, 3, 2, 1));
  OperationBuilder whole(OperationType::kBitcast);
  whole.input({2, 2}, std::vector<int32_t>{1, 0, 0, 1}).output(OperandType::kTensorInt64);
  ASSERT_TRUE(whole.run());
  EXPECT_EQ(whole.dimensions(), Dimensions{2});
  EXPECT_THAT(whole.result<int64_t>(), ElementsAre(1, int64_t{1} << 32));
  OperationBuilder uneven(OperationType::kBitcast);
  uneven.input({3}, std::vector<int32_t>{1, 2, 3}).output(OperandType::kTensorInt64);
  EXPECT_FALSE(uneven.run());
}

TEST(MatrixDiagonalTest, MakesAndReplaces) {
  OperationBuilder made(OperationType::kMatrixDiag);
  made.input({2, 2}, std::vector<float>{1, 2, 3, 4}).output();
  ASSERT_TRUE(made.run());
  EXPECT_EQ(made.dimensions(), (Dimensions{2, 2, 2}));
  EXPECT_THAT(made.result<float>(), ElementsAre(1, 0, 0, 2, 3, 0, 0, 4));
  OperationBuilder quantized(OperationType::kMatrixDiag);
  quantized.input(OperationBuilder::tensor(kUint8, {2}, 0.5f, 7), std::vector<uint8_t>{1, 2})
      .output(OperationBuilder::tensor(kUint8, {}, 0.5f, 7));
  ASSERT_TRUE(quantized.run());
  EXPECT_THAT(quantized.result<uint8_t>(), ElementsAre(1, 7, 7, 2));
  OperationBuilder replaced(OperationType::kMatrixSetDiag);
  replaced.input({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})
      .input({2}, std::vector<float>{-1, -2})
      .output();
  ASSERT_TRUE(replaced.run());
  EXPECT_THAT(replaced.result<float>(), ElementsAre(-1, 2, 3, 4, -2, 6));
  OperationBuilder wrong(OperationType::kMatrixSetDiag);
  wrong.input({2, 3}, std::vector<float>(6)).input({3}, std::vector<float>(3)).output();
  EXPECT_FALSE(wrong.run());
}

std::vector<int32_t> bucketsOf(std::vector<float> values, std::vector<float> boundaries) {
  OperationBuilder builder(OperationType::kBucketize);
  const auto count = static_cast<uint32_t>(values.size());
  const auto boundaryCount = static_cast<uint32_t>(boundaries.size());
  builder.input({count}, std::move(values))
      .input({boundaryCount}, std::move(boundaries))
      .output(kInt32);
  return builder.run() ? builder.result<int32_t>() : std::vector<int32_t>();
}

TEST(BucketizeTest, CountsBoundaries) {
  EXPECT_THAT(bucketsOf({-1, 0, 0.5f, 2, 3, INFINITY, NAN}, {0, 2, 2}),
              ElementsAre(0, 1, 1, 3, 3, 3, 3));
  EXPECT_THAT(bucketsOf({1}, {2, 1}), ElementsAre());
  EXPECT_THAT(bucketsOf({1}, {NAN}), ElementsAre());
}

template <typename T>
std::pair<std::vector<T>, std::vector<int32_t>> uniqueOf(OperandType type, std::vector<T> values) {
  OperationBuilder builder(OperationType::kUnique);
  const auto count = static_cast<uint32_t>(values.size());
  builder.input(OperationBuilder::tensor(type, {count}), std::move(values))
      .output(type)
      .output(kInt32);
  if (!builder.run()) return {};
  return {builder.result<T>(), builder.result<int32_t>(1)};
}

TEST(UniqueTest, KeepsTheOrderOfFirstOccurrences) {
  const auto [values, places] = uniqueOf<int32_t>(kInt32, {7, 3, 7, -1, 3, 7});
  EXPECT_THAT(values, ElementsAre(7, 3, -1));
  EXPECT_THAT(places, ElementsAre(0, 1, 0, 2, 1, 0));
}

TEST(UniqueTest, ZerosAreEqualAndNanIsNot) {
  const auto [values, places] =
      uniqueOf<float>(OperandType::kTensorFloat32, {NAN, 0.0f, -0.0f, NAN, 1});
  EXPECT_THAT(places, ElementsAre(0, 1, 1, 2, 3));
  EXPECT_EQ(values.size(), 4u);
}

}  // namespace
}  // namespace hearth::ops
