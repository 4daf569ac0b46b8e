// SPDX-License-Identifier: Apache-2.0
// Additions, clamps and PRELU that convolutions compute give what nodes of their own give.
#include "drivers/cpu/lowering/epilogue.h"

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
const auto kClamps = {OperationType::kRelu, OperationType::kRelu1, OperationType::kRelu6};

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

// A convolution of an input and, if `hasSum`, the sum of both. Returns the result.
uint32_t addResult(ModelBuilder* builder, bool hasSum) {
  const uint32_t data = builder->input(kFloat, kShape);
  const uint32_t result = builder->temporary(kFloat, kShape);
  addConvolution(builder, data, kNone, result, 1);
  if (!hasSum) return result;
  const uint32_t sum = builder->temporary(kFloat, kShape);
  addSum(builder, data, result, sum);
  return sum;
}

void addPrelu(ModelBuilder* builder, uint32_t input, uint32_t output, const Dimensions& shape) {
  size_t count = 1;
  for (const uint32_t size : shape) count *= size;
  const uint32_t slopes = builder->constant(kFloat, shape, randomFloats(count, 50));
  builder->operation(OperationType::kPrelu, {input, slopes}, {output});
}

// The last operation is one on the result of a convolution; `isFused`: an earlier node makes it
// where a product of ours runs the convolution.
void expectSums(const ModelBuilder& builder, bool isFused, size_t inputs = 1,
                const char* otherwise = "own") {
  std::vector<Bytes> bytes;
  for (unsigned i = 0; i < inputs; ++i) bytes.push_back(bytesOf(randomFloats(kCount, 100 + i)));
  EXPECT_EQ(differenceFromReference(builder.model(), bytes,
                                    isFused && hasF32Gemm() ? "none" : otherwise, kTolerance),
            "");
}

TEST(EpilogueTest, OfAnotherInput) {
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
TEST(EpilogueTest, OfWhatTheConvolutionReads) {
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
TEST(EpilogueTest, OfTwoConvolutions) {
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

TEST(EpilogueTest, NotWhereTheResultIsReadTwice) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t twice = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, first, twice);
  addSum(&builder, twice, first, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(EpilogueTest, NotWhereTheResultIsAnOutput) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.output(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, data, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(EpilogueTest, NotAfterAnActivation) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kRelu, first, 1);
  addSum(&builder, first, data, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(EpilogueTest, NotOfARowThatRepeats) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t row = builder.constant(kFloat, {kChannels}, randomFloats(kChannels, 5));
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, row, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

// The addend is computed after the convolution.
TEST(EpilogueTest, NotOfALaterResult) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t later = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  builder.operation(OperationType::kAbs, {data}, {later});
  addSum(&builder, first, later, builder.output(kFloat, kShape));
  expectSums(builder, false);
}

TEST(EpilogueTest, OfAConstant) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t constant = builder.constant(kFloat, kShape, randomFloats(kCount, 7));
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, constant, builder.output(kFloat, kShape));
  expectSums(builder, true);
}

TEST(EpilogueTest, ClampsOfConvolutionsAndSums) {
  for (const OperationType clamp : kClamps)
    for (const bool hasSum : {false, true}) {
      ModelBuilder builder;
      const uint32_t sum = addResult(&builder, hasSum);
      builder.operation(clamp, {sum}, {builder.output(kFloat, kShape)});
      expectSums(builder, true, 1, "xnnpack");
    }
}

TEST(EpilogueTest, SlopesOfConvolutionsAndSums) {
  for (const Dimensions& shape : {Dimensions{kChannels}, Dimensions{1, 1, kChannels}})
    for (const bool hasSum : {false, true}) {
      ModelBuilder builder;
      const uint32_t sum = addResult(&builder, hasSum);
      addPrelu(&builder, sum, builder.output(kFloat, kShape), shape);
      expectSums(builder, true, 1, "xnnpack");
    }
}

// The numbers of slopes are not those of channels, or the result is what multiplies.
TEST(EpilogueTest, NotSlopesOfAnotherKind) {
  for (const Dimensions& shape : {Dimensions{1}, Dimensions{kSide, 1, kChannels}, kShape}) {
    ModelBuilder builder;
    const uint32_t result = addResult(&builder, false);
    addPrelu(&builder, result, builder.output(kFloat, kShape), shape);
    expectSums(builder, false, 1, "xnnpack");
  }
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  builder.operation(OperationType::kPrelu, {data, first}, {builder.output(kFloat, kShape)});
  expectSums(builder, false, 1, "xnnpack");
}

// A convolution, or a sum, that is clamped has no second activation.
TEST(EpilogueTest, OneActivation) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t first = builder.temporary(kFloat, kShape);
  const uint32_t sum = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, first, 1);
  addSum(&builder, first, data, sum, kRelu);
  addPrelu(&builder, sum, builder.output(kFloat, kShape), {kChannels});
  expectSums(builder, false, 1, "xnnpack");
}

// What alone reads the result of a convolution may have no output.
TEST(EpilogueTest, NotOfAnOperationWithoutOutputs) {
  ModelBuilder builder;
  const uint32_t branch = builder.beginSubgraph();
  builder.operation(OperationType::kRelu, {builder.input(kFloat, kShape)},
                    {builder.temporary(kFloat, kShape)});
  builder.returnToMain();
  const uint32_t condition = builder.input(OperandType::kTensorBool8, {1});
  const uint32_t data = builder.input(kFloat, kShape);
  const uint32_t result = builder.temporary(kFloat, kShape);
  addConvolution(&builder, data, kNone, result, 1);
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branch), builder.subgraphOperand(branch), result}, {});
  builder.operation(OperationType::kAbs, {data}, {builder.output(kFloat, kShape)});
  const auto both = runBoth(builder.model(), {Bytes{1}, bytesOf(randomFloats(kCount, 1))});
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made, both->expected);
}

TEST(EpilogueTest, NotWhereTheSumIsReadTwice) {
  ModelBuilder builder;
  const uint32_t sum = addResult(&builder, true);
  builder.operation(OperationType::kAbs, {sum}, {builder.output(kFloat, kShape)});
  builder.operation(OperationType::kRelu, {sum}, {builder.output(kFloat, kShape)});
  expectSums(builder, false, 1, "xnnpack");
}

}  // namespace
}  // namespace hearth::cpu
