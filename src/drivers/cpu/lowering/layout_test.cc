// SPDX-License-Identifier: Apache-2.0
// Transpositions, updated slices, means and resized images are what the reference kernels make.
#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/testing/compared_models.h"
#include "ops/float_folds.h"

namespace hearth::cpu {
namespace {

// From planes to pixels, of few dimensions, and of more than XNNPACK takes.
TEST(TransposeTest, EqualsTheReference) {
  struct Case {
    Dimensions input;
    std::vector<int32_t> order;
    const char* kernel = "own";
  };
  for (const Case& c : std::vector<Case>{{{1, 3, 7, 9}, {0, 2, 3, 1}},
                                         {{2, 3, 16, 16}, {0, 2, 3, 1}},
                                         {{2, 3, 5, 7}, {3, 1, 0, 2}, "xnnpack"},
                                         {{17}, {0}, "xnnpack"},
                                         {{2, 3, 1, 2, 3, 2, 5}, {6, 5, 4, 3, 2, 1, 0}}}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kUint8, c.input, 0.1f);
    const auto rank = static_cast<uint32_t>(c.input.size());
    const uint32_t order = builder.constant(OperandType::kTensorInt32, {rank}, c.order);
    Dimensions output;
    for (const int32_t dimension : c.order)
      output.push_back(c.input[static_cast<size_t>(dimension)]);
    builder.operation(OperationType::kTranspose, {input, order},
                      {builder.output(kUint8, output, 0.1f)});
    EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(countOf(c.input), 1)}, c.kernel,
                                      0.0f),
              "")
        << rank;
  }
}

TEST(TransposeTest, OfEachSizeOfElementsIsOnXnnpack) {
  for (const OperandType type :
       {OperandType::kTensorFloat16, OperandType::kTensorFloat32, OperandType::kTensorInt64}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {4, 5, 6});
    const uint32_t order =
        builder.constant(OperandType::kTensorInt32, {3}, std::vector<int32_t>{2, 0, 1});
    builder.operation(OperationType::kTranspose, {input, order}, {builder.output(type, {6, 4, 5})});
    // Small floats of each type, whatever the bytes.
    Bytes bytes = randomBytes(4 * 5 * 6 * graph::elementSize(type), 1);
    for (uint8_t& byte : bytes) byte &= 0x3b;
    EXPECT_EQ(differenceFromReference(builder.model(), {bytes}, "xnnpack", 0.0f), "")
        << graph::nameOf(type);
  }
}

// Slices of neighbouring bytes, of rows at one distance, and what the shared kernel copies.
TEST(SliceTest, EqualsTheReference) {
  struct Case {
    Dimensions input;
    std::vector<int32_t> begin, end, stride;
    Dimensions output;
  };
  for (const Case& c :
       std::vector<Case>{{{1, 9, 1, 64}, {0, 1, 0, 0}, {1, 9, 1, 64}, {1, 1, 1, 1}, {1, 8, 1, 64}},
                         {{3, 4, 5}, {1, 0, 0}, {3, 4, 5}, {1, 1, 1}, {2, 4, 5}},
                         {{3, 4, 5}, {0, 1, 0}, {3, 3, 5}, {1, 1, 1}, {3, 2, 5}},
                         {{3, 4, 5}, {0, 0, 1}, {3, 4, 4}, {1, 1, 1}, {3, 4, 3}},
                         {{3, 4, 5}, {2, 1, 3}, {3, 2, 4}, {1, 1, 1}, {1, 1, 1}},
                         {{3, 4, 5}, {0, 0, 0}, {3, 4, 5}, {2, 1, 1}, {2, 4, 5}},
                         {{3, 4, 6}, {0, 0, 1}, {3, 4, 6}, {1, 1, 2}, {3, 4, 3}},
                         {{3, 4, 5}, {0, 1, 1}, {3, 3, 4}, {1, 1, 1}, {3, 2, 3}},
                         {{3, 4, 5}, {2, 0, 0}, {-4, 4, 5}, {-1, 1, 1}, {3, 4, 5}},
                         {{100, 100, 3}, {0, 0, 1}, {100, 100, 3}, {1, 1, 1}, {100, 100, 2}}}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kUint8, c.input, 0.1f);
    const auto rank = static_cast<uint32_t>(c.input.size());
    std::vector<uint32_t> inputs = {input};
    for (const std::vector<int32_t>& values : {c.begin, c.end, c.stride})
      inputs.push_back(builder.constant(OperandType::kTensorInt32, {rank}, values));
    for (int mask = 0; mask < 3; ++mask) inputs.push_back(builder.scalar(0));
    builder.operation(OperationType::kStridedSlice, inputs,
                      {builder.output(kUint8, c.output, 0.1f)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {randomBytes(countOf(c.input), 1)}, "own", 0.0f),
        "")
        << testing::PrintToString(c.output);
  }
}

// As the cache of a language model: the output takes the input's memory if no later node reads it.
TEST(DynamicUpdateSliceTest, EqualsTheReferenceInPlaceAndNot) {
  const Dimensions cache = {1, 40, 2, 16};
  const Dimensions update = {1, 3, 2, 16};
  for (const bool dies : {true, false}) {
    ModelBuilder builder;
    const uint32_t given = builder.input(kFloat, cache);
    const uint32_t rows = builder.input(kFloat, update);
    const uint32_t begin = builder.input(OperandType::kTensorInt32, {4});
    const uint32_t data = builder.temporary(kFloat, cache);
    builder.operation(OperationType::kAbs, {given}, {data});
    const uint32_t updated = builder.temporary(kFloat, cache);
    builder.operation(OperationType::kDynamicUpdateSlice, {data, rows, begin}, {updated});
    builder.operation(OperationType::kSub, {updated, dies ? given : data, builder.scalar(0)},
                      {builder.output(kFloat, cache)});
    EXPECT_EQ(differenceFromReference(builder.model(),
                                      {floatsFor(cache, 1), floatsFor(update, 2),
                                       bytesOf(std::vector<int32_t>{0, 38, 0, 0})},
                                      "xnnpack", 1e-6f),
              "");
  }
}

TEST(ConcatenationTest, OfOtherScalesEqualsTheReference) {
  for (const OperandType type : {kInt8, kUint8})
    for (const uint32_t channels : {1u, 7u, 64u, 100u}) {
      ModelBuilder builder;
      const Dimensions shape = {2, 3, 5, channels};
      const uint32_t same = builder.input(type, shape, 0.1f, 3);
      const uint32_t wider = builder.input(type, shape, 0.3f, 3);
      const uint32_t moved = builder.input(type, shape, 0.07f, 20);
      builder.operation(OperationType::kConcatenation, {wider, same, moved, builder.scalar(3)},
                        {builder.output(type, {2, 3, 5, 3 * channels}, 0.1f, 3)});
      std::vector<Bytes> inputs;
      for (const unsigned seed : {1u, 2u, 3u}) inputs.push_back(randomBytes(countOf(shape), seed));
      EXPECT_EQ(differenceFromReference(builder.model(), inputs, "own", 0.0f), "");
    }
}

TEST(ResizeBilinearTest, IsOnXnnpack) {
  for (const OperandType type : {kInt8, kUint8, kFloat}) {
    const float scale = type == kFloat ? 0.0f : 0.1f;
    ModelBuilder builder;
    const Dimensions shape = {2, 5, 9, 3};
    builder.operation(OperationType::kResizeBilinear,
                      {builder.input(type, shape, scale), builder.scalar(14), builder.scalar(8)},
                      {builder.output(type, {2, 8, 14, 3}, scale)});
    const Bytes values = type == kFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {values}, "xnnpack", 1e-6f), "");
  }
}

TEST(MeanTest, SeveralGroupsOfAxesEqualTheReference) {
  for (const std::vector<int32_t>& axes :
       std::vector<std::vector<int32_t>>{{0, 2}, {1, 2, 4}, {0, 1, 3}, {0, 2, 4}, {4, 1}}) {
    ModelBuilder builder;
    const Dimensions dimensions = {2, 5, 6, 3, 7};
    Dimensions kept = dimensions;
    for (const int32_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    const uint32_t data = builder.input(kFloat, dimensions);
    const uint32_t given =
        builder.constant(OperandType::kTensorInt32, {static_cast<uint32_t>(axes.size())}, axes);
    builder.operation(OperationType::kMean, {data, given, builder.scalar(1)},
                      {builder.output(kFloat, kept)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {floatsFor(dimensions, 1)}, "xnnpack", 1e-6f), "");
  }
}

TEST(MeanTest, RowsAreOnAKernelOfOursAndExact) {
  if (!ops::hasFloatFolds()) GTEST_SKIP() << "This CPU has no vectors for it.";
  for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{3}, {2, 3}}) {
    ModelBuilder builder;
    const Dimensions dimensions = {2, 5, 6, 67};
    Dimensions kept = dimensions;
    for (const int32_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    const uint32_t data = builder.input(kFloat, dimensions);
    const uint32_t given =
        builder.constant(OperandType::kTensorInt32, {static_cast<uint32_t>(axes.size())}, axes);
    builder.operation(OperationType::kMean, {data, given, builder.scalar(1)},
                      {builder.output(kFloat, kept)});
    EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor(dimensions, 1)}, "own", 0.0f),
              "");
  }
}

}  // namespace
}  // namespace hearth::cpu
