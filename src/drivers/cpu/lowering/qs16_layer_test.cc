// SPDX-License-Identifier: Apache-2.0
// Layers with 16-bit activations give exactly the numbers of the reference kernels.
#include <gtest/gtest.h>

#include <algorithm>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

constexpr auto kInt16 = OperandType::kTensorQuant16Symm;
constexpr auto kPerChannel = OperandType::kTensorQuant8SymmPerChannel;

struct Case {
  Dimensions input;
  uint32_t outputs, kernel, stride;
  OperandType weights = kPerChannel;
  OperandType bias = OperandType::kTensorInt64;
  bool isExtreme = false;  // all numbers are the least of their types
  uint32_t groups = 1;
};

// Random activations.
Bytes activations(const Case& c) {
  Bytes bytes = randomBytes(countOf(c.input) * sizeof(int16_t), 1);
  if (c.isExtreme)
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 2 == 0 ? 0x00 : 0x80;
  return bytes;
}

// Sums of random products of this many numbers fill the output's range more or less.
float outputScale(size_t inputs) {
  return 1e-4f * static_cast<float>(inputs);
}

uint32_t addBias(ModelBuilder* builder, const Case& c) {
  const Bytes random = randomBytes(c.outputs, 3);
  if (c.bias == OperandType::kTensorInt64)
    return builder->constant(c.bias, {c.outputs},
                             std::vector<int64_t>(random.begin(), random.end()));
  if (c.bias == OperandType::kTensorInt32)
    return builder->constant(c.bias, {c.outputs},
                             std::vector<int32_t>(random.begin(), random.end()), 1e-4f * 0.02f);
  return builder->omitted(OperandType::kTensorInt64);
}

uint32_t addFilter(ModelBuilder* builder, const Case& c, const Dimensions& shape) {
  Bytes bytes = randomBytes(countOf(shape), 2);
  if (c.isExtreme) std::ranges::fill(bytes, uint8_t{0x80});
  return builder->constant(c.weights, shape, bytes, c.weights == kPerChannel ? 0.0f : 0.02f);
}

class Qs16ConvolutionTest : public testing::TestWithParam<Case> {};

TEST_P(Qs16ConvolutionTest, EqualsTheReference) {
  const Case& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kInt16, c.input, 1e-4f);
  const Dimensions shape = {c.outputs, c.kernel, c.kernel, c.input[3] / c.groups};
  const uint32_t filter = addFilter(&builder, c, shape);
  const uint32_t bias = addBias(&builder, c);
  const auto sizeOf = [&](uint32_t size) {
    return (size + c.stride - 1) / c.stride;
  };
  const uint32_t stride = builder.scalar(static_cast<int32_t>(c.stride));
  std::vector<uint32_t> inputs = {input, filter, bias, builder.scalar(1), stride, stride};
  if (c.groups != 1) inputs.push_back(builder.scalar(static_cast<int32_t>(c.groups)));
  inputs.push_back(builder.scalar(0));
  builder.operation(
      c.groups == 1 ? OperationType::kConv2d : OperationType::kGroupedConv2d, inputs,
      {builder.output(kInt16, {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), c.outputs},
                      outputScale(countOf(shape) / c.outputs))});
  graph::Model model = builder.model();
  if (c.weights == kPerChannel)
    model.main().operands[filter].perChannel.scales = risingScales(c.outputs, 0.001f);
  EXPECT_EQ(differenceFromReference(model, {activations(c)}, "own", 0.0f), "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Qs16ConvolutionTest,
    testing::Values(
        Case{{1, 8, 8, 5}, 7, 3, 1}, Case{{2, 9, 7, 16}, 33, 3, 2}, Case{{1, 7, 7, 96}, 40, 3, 1},
        Case{{3, 5, 3, 64}, 16, 1, 1},
        Case{{1, 6, 6, 3}, 1, 5, 1, kInt8, OperandType::kTensorInt32},
        Case{{1, 13, 1, 9}, 20, 1, 1, kInt8, kFloat},
        Case{{1, 4, 4, 120}, 18, 3, 1, kPerChannel, OperandType::kTensorInt64, true},
        Case{{1, 5, 5, 128}, 256, 3, 1, kPerChannel, OperandType::kTensorInt64, false, 2},
        Case{{2, 9, 7, 15}, 24, 3, 2, kPerChannel, OperandType::kTensorInt64, false, 3},
        Case{{1, 6, 6, 8}, 68, 1, 1, kInt8, OperandType::kTensorInt32, false, 4}));

struct WindowCase {
  OperationType type;
  Dimensions input, filter, output;
  int32_t stride, multiplier, dilation;
  OperandType weights = kPerChannel;
};

class Qs16WindowTest : public testing::TestWithParam<WindowCase> {};

// Depthwise and transposed convolutions run on the kernels of src/ops.
TEST_P(Qs16WindowTest, EqualsTheReference) {
  const WindowCase& c = GetParam();
  ModelBuilder builder;
  const bool isDepthwise = c.type == OperationType::kDepthwiseConv2d;
  const uint32_t outputs = c.output[3];
  const uint32_t input = builder.input(kInt16, c.input, 1e-4f);
  const uint32_t filter = builder.constant(c.weights, c.filter, randomBytes(countOf(c.filter), 2),
                                           c.weights == kPerChannel ? 0.0f : 0.02f);
  const Bytes random = randomBytes(outputs, 3);
  const uint32_t bias = builder.constant(OperandType::kTensorInt64, {outputs},
                                         std::vector<int64_t>(random.begin(), random.end()));
  const uint32_t stride = builder.scalar(c.stride);
  const uint32_t output = builder.output(
      kInt16, c.output, outputScale(isDepthwise ? countOf(c.filter) / outputs : 4 * c.input[3]));
  if (isDepthwise) {
    const uint32_t dilation = builder.scalar(c.dilation);
    builder.operation(
        c.type,
        {input, filter, bias, builder.scalar(1), stride, stride, builder.scalar(c.multiplier),
         builder.scalar(0), builder.scalar(false), dilation, dilation},
        {output});
  } else {
    const std::vector<int32_t> shape(c.output.begin(), c.output.end());
    builder.operation(c.type,
                      {input, filter, bias, builder.constant(OperandType::kTensorInt32, {4}, shape),
                       builder.scalar(1), stride, stride, builder.scalar(0), builder.scalar(false)},
                      {output});
  }
  graph::Model model = builder.model();
  if (c.weights == kPerChannel) {
    model.main().operands[filter].perChannel.scales = risingScales(outputs, 0.001f);
    model.main().operands[filter].perChannel.channelDim = isDepthwise ? 3 : 0;
  }
  const Bytes content = randomBytes(countOf(c.input) * sizeof(int16_t), 1);
  EXPECT_EQ(differenceFromReference(model, {content}, nullptr, 0.0f), "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Qs16WindowTest,
    testing::Values(
        WindowCase{
            OperationType::kDepthwiseConv2d, {1, 8, 7, 19}, {1, 3, 3, 19}, {1, 8, 7, 19}, 1, 1, 1},
        WindowCase{
            OperationType::kDepthwiseConv2d, {2, 9, 9, 5}, {1, 5, 5, 10}, {2, 5, 5, 10}, 2, 2, 1},
        WindowCase{OperationType::kDepthwiseConv2d,
                   {1, 11, 11, 64},
                   {1, 3, 3, 64},
                   {1, 11, 11, 64},
                   1,
                   1,
                   2,
                   kInt8},
        WindowCase{
            OperationType::kTransposeConv2d, {1, 5, 4, 13}, {7, 3, 3, 13}, {1, 10, 8, 7}, 2, 1, 1},
        WindowCase{OperationType::kTransposeConv2d,
                   {2, 4, 4, 64},
                   {3, 2, 2, 64},
                   {2, 8, 8, 3},
                   2,
                   1,
                   1,
                   kInt8}));

class Qs16FullyConnectedTest : public testing::TestWithParam<Case> {};

TEST_P(Qs16FullyConnectedTest, EqualsTheReference) {
  const Case& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kInt16, c.input, 1e-4f);
  const uint32_t filter = addFilter(&builder, c, {c.outputs, c.input[1]});
  const uint32_t bias = addBias(&builder, c);
  builder.operation(OperationType::kFullyConnected, {input, filter, bias, builder.scalar(1)},
                    {builder.output(kInt16, {c.input[0], c.outputs}, outputScale(c.input[1]))});
  graph::Model model = builder.model();
  if (c.weights == kPerChannel)
    model.main().operands[filter].perChannel.scales = risingScales(c.outputs, 0.001f);
  EXPECT_EQ(differenceFromReference(model, {activations(c)}, "own", 0.0f), "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Qs16FullyConnectedTest,
    testing::Values(Case{{1, 1024}, 100, 0, 0, kInt8}, Case{{5, 37}, 17, 0, 0, kInt8},
                    Case{{6, 509}, 32, 0, 0}, Case{{7, 510}, 31, 0, 0}, Case{{14, 511}, 64, 0, 0},
                    Case{{2, 1}, 1, 0, 0, kInt8, kFloat},
                    Case{{13, 2000}, 48, 0, 0, kInt8, OperandType::kTensorInt32, true}));

}  // namespace
}  // namespace hearth::cpu
