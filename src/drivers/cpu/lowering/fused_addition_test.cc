// SPDX-License-Identifier: Apache-2.0
// Additions that convolutions make give what nodes of their own give.
#include "drivers/cpu/lowering/fused_addition.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

// More channels than XNNPACK's kernel is faster for.
constexpr uint32_t kChannels = 72;
constexpr uint32_t kSide = 5;
const Dimensions kShape = {1, kSide, kSide, kChannels};
constexpr size_t kCount = size_t{kSide} * kSide * kChannels;
constexpr int32_t kNone = 0;
constexpr int32_t kRelu = 1;
constexpr float kTolerance = 1e-5f;

// A convolution with windows of one place.
void addConvolution(ModelBuilder* builder, uint32_t input, int32_t activation, uint32_t output,
                    unsigned seed) {
  const uint32_t filter = builder->constant(kFloat, {kChannels, 1, 1, kChannels},
                                            randomFloats(size_t{kChannels} * kChannels, seed));
  const uint32_t bias = builder->constant(kFloat, {kChannels}, randomFloats(kChannels, seed + 1));
  builder->operation(OperationType::kConv2d,
                     {input, filter, bias, builder->scalar(1), builder->scalar(1),
                      builder->scalar(1), builder->scalar(activation)},
                     {output});
}

void addSum(ModelBuilder* builder, uint32_t a, uint32_t b, uint32_t output,
            int32_t activation = kNone) {
  builder->operation(OperationType::kAdd, {a, b, builder->scalar(activation)}, {output});
}

// The last operation is an addition; `isFused`: an earlier node makes it where a product of ours
// runs the convolution.
void expectSums(const ModelBuilder& builder, bool isFused, size_t inputs = 1) {
  std::vector<Bytes> bytes;
  for (unsigned i = 0; i < inputs; ++i) bytes.push_back(bytesOf(randomFloats(kCount, 100 + i)));
  EXPECT_EQ(differenceFromReference(builder.model(), bytes,
                                    isFused && hasF32Gemm() ? "none" : "own", kTolerance),
            "");
}

TEST(FusedAdditionTest, OfAnotherInput) {
  for (const bool isFirst : {false, true})
    for (const int32_t activation : {kNone, kRelu}) {
      ModelBuilder builder;
      const uint32_t data = builder.input(kFloat, kShape);
      const uint32_t other = builder.input(kFloat, kShape);
      const uint32_t result = builder.temporary(kFloat, kShape);
      addConvolution(&builder, data, kNone, result, 1);
      addSum(&builder, isFirst ? other : result, isFirst ? result : other,
             builder.output(kFloat, kShape), activation);
      expectSums(builder, true, 2);
    }
}

// The sum must not take over the memory that the convolution still reads.
TEST(FusedAdditionTest, OfWhatTheConvolutionReads) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t second = builder.temporary(kFloat, kShape);
  const uint32_t sum = builder.temporary(kFloat, kShape);
  const uint32_t third = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kRelu, first, 1);
  addConvolution(&builder, first, kNone, second, 2);
  addSum(&builder, second, first, sum, kRelu);
  addConvolution(&builder, sum, kNone, third, 3);
  addSum(&builder, third, sum, builder.output(kFloat, kShape));
  expectSums(builder, true);
}

// As in a block with a projection: the second convolution adds the result of the first one, whose
// memory it takes over.
TEST(FusedAdditionTest, OfTwoConvolutions) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t second = builder.temporary(kFloat, kShape);
  const uint32_t sum = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addConvolution(&builder, data, kNone, second, 2);
  addSum(&builder, first, second, sum, kRelu);
  addSum(&builder, sum, data, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(FusedAdditionTest, NotWhereTheResultIsReadTwice) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t twice = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, first, twice);
  addSum(&builder, twice, first, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(FusedAdditionTest, NotWhereTheResultIsAnOutput) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.output(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, data, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(FusedAdditionTest, NotAfterAnActivation) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kRelu, first, 1);
  addSum(&builder, first, data, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(FusedAdditionTest, NotOfARowThatRepeats) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t row = builder.constant(kFloat, {kChannels}, randomFloats(kChannels, 5));
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, row, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

// The addend is computed after the convolution.
TEST(FusedAdditionTest, NotOfALaterResult) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t later = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  builder.operation(OperationType::kAbs, {data}, {later});
  addSum(&builder, first, later, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(FusedAdditionTest, OfAConstant) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t constant = builder.constant(kFloat, kShape, randomFloats(kCount, 7));
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, constant, builder.output(kFloat, kShape));
  expectSums(builder, true);
}

}  // namespace
}  // namespace hearth::cpu
