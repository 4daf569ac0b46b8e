// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drivers/cpu/lowering/f32_depthwise.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct HybridDepthwiseCase {
  Dimensions input;
  int32_t kernel, stride, dilation;
  OperandType type = OperandType::kTensorQuant8SymmPerChannel;
  int32_t multiplier = 1;
  bool hasBias = true;
  int32_t activation = 0;
};

class HybridDepthwiseTest : public testing::TestWithParam<HybridDepthwiseCase> {};

TEST_P(HybridDepthwiseTest, EqualsTheReference) {
  const HybridDepthwiseCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, c.input);
  const auto kernel = static_cast<uint32_t>(c.kernel);
  const uint32_t channels = c.input[3] * static_cast<uint32_t>(c.multiplier);
  const Dimensions shape = {1, kernel, kernel, channels};
  const bool isPerChannel = c.type == OperandType::kTensorQuant8SymmPerChannel;
  const uint32_t filter =
      builder.constant(c.type, shape, randomBytes(countOf(shape), 2), isPerChannel ? 0.0f : 0.02f);
  const uint32_t bias = c.hasBias ? builder.constant(kFloat, {channels}, randomFloats(channels, 3))
                                  : builder.omitted(kFloat);
  const auto sizeOf = [&](uint32_t size) {
    return (size + static_cast<uint32_t>(c.stride) - 1) / static_cast<uint32_t>(c.stride);
  };
  const Dimensions output = {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), channels};
  const uint32_t stride = builder.scalar(c.stride);
  const uint32_t dilation = builder.scalar(c.dilation);
  builder.operation(
      OperationType::kDepthwiseConv2d,
      {input, filter, bias, builder.scalar(1), stride, stride, builder.scalar(c.multiplier),
       builder.scalar(c.activation), builder.scalar(false), dilation, dilation},
      {builder.output(kFloat, output)});
  graph::Model model = builder.model();
  if (isPerChannel) {
    model.main().operands[filter].perChannel.scales = risingScales(channels, 0.001f);
    model.main().operands[filter].perChannel.channelDim = 3;
  }
  Convolution g;
  g.isDepthwise = true;
  g.kernelHeight = g.kernelWidth = kernel;
  g.groupOutputChannels = static_cast<size_t>(c.multiplier);
  EXPECT_EQ(differenceFromReference(model, {floatsFor(c.input, 1, 2.0f)},
                                    hasF32Depthwise(g) ? "own" : "reference", 1e-5f),
            "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, HybridDepthwiseTest,
                         testing::Values(HybridDepthwiseCase{{1, 8, 8, 5}, 3, 1, 1},
                                         HybridDepthwiseCase{{2, 9, 7, 16}, 3, 2, 1},
                                         HybridDepthwiseCase{{3, 13, 11, 33}, 5, 1, 1},
                                         HybridDepthwiseCase{{1, 17, 19, 8}, 3, 1, 2},
                                         HybridDepthwiseCase{
                                             {1, 12, 12, 64}, 3, 1, 1, kInt8, 1, false, 1},
                                         HybridDepthwiseCase{{1, 6, 6, 4}, 3, 1, 1, kInt8, 2},
                                         HybridDepthwiseCase{{1, 9, 9, 6}, 7, 1, 1}));

// An image of zeros has no range.
TEST(HybridDepthwiseZerosTest, EqualTheReference) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {1, 4, 4, 8});
  const uint32_t filter = builder.constant(kInt8, {1, 3, 3, 8}, randomBytes(72, 2), 0.02f);
  const uint32_t bias = builder.constant(kFloat, {8}, randomFloats(8, 3));
  builder.operation(OperationType::kDepthwiseConv2d,
                    {input, filter, bias, builder.scalar(1), builder.scalar(1), builder.scalar(1),
                     builder.scalar(1), builder.scalar(0)},
                    {builder.output(kFloat, {1, 4, 4, 8})});
  EXPECT_EQ(
      differenceFromReference(builder.model(), {bytesOf(std::vector<float>(128))}, nullptr, 1e-6f),
      "");
}

}  // namespace
}  // namespace hearth::cpu
