// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows, groups and zero points that few models have give what the reference
// kernels give.
#include "drivers/cpu/lowering/convolution.h"

#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// With a window of one place that steps by one, without padding, kernels take the pixels as they
// lie. These windows differ from that in one number at most.
struct NearlyOverPixels {
  int32_t kernelHeight = 1, kernelWidth = 1, strideHeight = 1, strideWidth = 1;
  int32_t left = 0, right = 0, top = 0, bottom = 0;
};

class NearlyOverPixelsTest : public testing::TestWithParam<NearlyOverPixels> {
 protected:
  // Compares a convolution of data of this type. `addFilter` adds a filter of the shape that it
  // gets.
  template <typename AddFilter>
  static void compare(OperandType type, AddFilter addFilter) {
    const NearlyOverPixels& w = GetParam();
    constexpr uint32_t kInputs = 24;
    constexpr uint32_t kOutputs = 40;
    const bool isFloat = type == kFloat;
    ModelBuilder builder;
    const Dimensions shape = {2, 6, 7, kInputs};
    const uint32_t input = builder.input(type, shape, isFloat ? 0.0f : 0.03f, isFloat ? 0 : 5);
    const uint32_t filter =
        addFilter(&builder, Dimensions{kOutputs, static_cast<uint32_t>(w.kernelHeight),
                                       static_cast<uint32_t>(w.kernelWidth), kInputs});
    const uint32_t bias = isFloat ? builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 3))
                                  : builder.constant(OperandType::kTensorInt32, {kOutputs},
                                                     std::vector<int32_t>(kOutputs, 300), 0.0006f);
    std::vector<uint32_t> inputs = {input, filter, bias};
    for (const int32_t number :
         {w.left, w.right, w.top, w.bottom, w.strideWidth, w.strideHeight, 0})
      inputs.push_back(builder.scalar(number));
    const auto sizeOf = [](int32_t size, int32_t kernel, int32_t stride) {
      return static_cast<uint32_t>((size - kernel) / stride + 1);
    };
    const Dimensions result = {2, sizeOf(6 + w.top + w.bottom, w.kernelHeight, w.strideHeight),
                               sizeOf(7 + w.left + w.right, w.kernelWidth, w.strideWidth),
                               kOutputs};
    builder.operation(OperationType::kConv2d, inputs,
                      {builder.output(type, result, isFloat ? 0.0f : 0.3f, isFloat ? 0 : 5)});
    const Bytes data = isFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {data}, nullptr, 1e-5f), "");
  }
};

TEST_P(NearlyOverPixelsTest, EqualsTheReference) {
  compare(kFloat, [](ModelBuilder* builder, const Dimensions& shape) {
    return builder->constant(kFloat, shape, randomFloats(countOf(shape), 2));
  });
  compare(kFloat, [](ModelBuilder* builder, const Dimensions& shape) {
    std::vector<_Float16> values;
    for (const float value : randomFloats(countOf(shape), 2))
      values.push_back(static_cast<_Float16>(value));
    const uint32_t half = builder->constant(OperandType::kTensorFloat16, shape, values);
    const uint32_t filter = builder->temporary(kFloat, shape);
    builder->operation(OperationType::kDequantize, {half}, {filter});
    return filter;
  });
  // Hybrid, then int8 and uint8 throughout.
  for (const OperandType type : {kFloat, kInt8, kUint8})
    compare(type, [&](ModelBuilder* builder, const Dimensions& shape) {
      return builder->constant(type == kFloat ? kInt8 : type, shape, randomBytes(countOf(shape), 2),
                               0.02f, type == kUint8 ? 120 : 0);
    });
}

INSTANTIATE_TEST_SUITE_P(Windows, NearlyOverPixelsTest,
                         testing::Values(NearlyOverPixels{}, NearlyOverPixels{2},
                                         NearlyOverPixels{1, 2}, NearlyOverPixels{1, 1, 2},
                                         NearlyOverPixels{1, 1, 1, 2},
                                         NearlyOverPixels{1, 1, 1, 1, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 0, 1},
                                         NearlyOverPixels{1, 1, 1, 1, 0, 0, 0, 1}));

// A filter of int8 whose zero point is not 0 is none of XNNPACK's.
TEST(FilterZeroPointTest, LayersOfInt8EqualTheReference) {
  for (const int32_t zero : {0, 1, -3}) {
    for (const bool isConvolution : {false, true}) {
      ModelBuilder builder;
      const Dimensions shape = isConvolution ? Dimensions{1, 2, 3, 24} : Dimensions{6, 24};
      const Dimensions weights = isConvolution ? Dimensions{16, 1, 1, 24} : Dimensions{16, 24};
      const Dimensions result = isConvolution ? Dimensions{1, 2, 3, 16} : Dimensions{6, 16};
      std::vector<uint32_t> inputs = {
          builder.input(kInt8, shape, 0.03f, 4),
          builder.constant(kInt8, weights, randomBytes(countOf(weights), 2), 0.02f, zero),
          builder.constant(OperandType::kTensorInt32, {16}, std::vector<int32_t>(16, 300),
                           0.03f * 0.02f)};
      if (isConvolution)
        for (const int32_t value : {1, 1, 1}) inputs.push_back(builder.scalar(value));
      inputs.push_back(builder.scalar(0));
      builder.operation(isConvolution ? OperationType::kConv2d : OperationType::kFullyConnected,
                        inputs, {builder.output(kInt8, result, 0.3f, -5)});
      const auto support = createCpuDevice()->explainOperations(builder.model());
      ASSERT_TRUE(support) << support.error().toString();
      EXPECT_EQ(support->back().kernel == "reference", zero != 0) << support->back().kernel;
      EXPECT_EQ(
          differenceFromReference(builder.model(), {randomBytes(countOf(shape), 1)}, nullptr, 0.0f),
          "");
    }
  }
}

// 7 x 7 pixels are three tiles of 16 rows and one row, 5 x 3 are two tiles of 7 rows and one row.
TEST(LastTileTest, OnlyProductsThatXnnpackComputesWronglyMayEndInOneRow) {
  Convolution g;
  g.kernelHeight = g.kernelWidth = 3;
  g.groupInputChannels = 80;
  g.outputHeight = g.outputWidth = 7;
  EXPECT_TRUE(mayEndInOneRow(g, false));
  Convolution other = g;
  other.outputHeight = 5;
  other.outputWidth = 3;
  EXPECT_TRUE(mayEndInOneRow(other, false));
  other = g;
  other.groupInputChannels = 64;
  EXPECT_FALSE(mayEndInOneRow(other, false));
  EXPECT_TRUE(mayEndInOneRow(other, true));
  other = g;
  other.outputWidth = 8;
  EXPECT_FALSE(mayEndInOneRow(other, false));
  EXPECT_FALSE(mayEndInOneRow(other, true));
  other = g;
  other.kernelHeight = other.kernelWidth = 1;
  EXPECT_FALSE(mayEndInOneRow(other, false));
  EXPECT_TRUE(mayEndInOneRow(other, true));
  other.left = 1;
  EXPECT_TRUE(mayEndInOneRow(other, false));
  other.left = 0;
  other.strideWidth = 2;
  EXPECT_TRUE(mayEndInOneRow(other, false));
}

}  // namespace
}  // namespace hearth::cpu
