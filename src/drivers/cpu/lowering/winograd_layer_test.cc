// SPDX-License-Identifier: Apache-2.0
// Our layer after Winograd gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/winograd_layer.h"

#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"

namespace hearth::cpu {
namespace {

Convolution geometryOf(size_t batch, size_t height, size_t width, size_t channels, size_t columns) {
  Convolution g;
  g.kernelHeight = g.kernelWidth = 3;
  g.batch = batch;
  g.inputHeight = height;
  g.inputWidth = width;
  g.groupInputChannels = channels;
  g.groupOutputChannels = columns;
  return g;
}

class WinogradLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    if (!hasAvx2Winograd(2, kWinogradChannels, true)) GTEST_SKIP() << "This CPU has no AVX2.";
    XnnpackComparisonTest::SetUp();
  }

  void compare(Convolution g, unsigned seed) {
    findOutputSize(&g);
    Int8ConvolutionSample sample(g, seed % 2 == 0, seed);
    PackedWeights forXnnpack(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&forXnnpack);
    for (const size_t side : {2, 4}) {
      if (!hasAvx2Winograd(side, g.groupInputChannels, true)) continue;
      SCOPED_TRACE(side);
      WinogradLayer layer;
      sample.describeTo(&layer);
      Avx2Winograd& product = layer.product;
      product.side = side;
      product.channels = g.groupInputChannels;
      product.columns = g.groupOutputChannels;
      std::vector<float> factors;
      for (size_t i = 0; i < product.columns; ++i)
        factors.push_back(sample.inputScale * sample.scales[i] / sample.outputScale);
      std::vector<uint8_t> packed(avx2WinogradBytes(product));
      packAvx2Winograd(product, reinterpret_cast<const uint8_t*>(sample.filter.data()), 0,
                       layer.inputZero, sample.bias.data(), factors.data(), packed.data());
      product.packed = packed.data();
      const auto kernel = makeWinogradLayerKernel(layer);
      expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
        return sample.onKernel(kernel.get(), pool);
      });
    }
  }
};

TEST_F(WinogradLayerTest, ImagesAndPaddings) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 60; ++seed) {
    Convolution g = geometryOf(randomNumber(&random, 1, 2), randomNumber(&random, 3, 15),
                               randomNumber(&random, 3, 15), 16, randomNumber(&random, 1, 40));
    g.top = randomNumber(&random, 0, 2);
    g.bottom = randomNumber(&random, 0, 2);
    g.left = randomNumber(&random, 0, 2);
    g.right = randomNumber(&random, 0, 2);
    compare(g, seed);
  }
}

TEST_F(WinogradLayerTest, ChannelsAndColumns) {
  unsigned seed = 0;
  for (const size_t channels : {16, 48, 64, 224, 512})
    for (const size_t columns : {1, 16, 33, 64}) {
      Convolution g = geometryOf(1, 14, 14, channels, columns);
      g.top = g.bottom = g.left = g.right = 1;
      compare(g, seed++);
    }
}

// More tiles than a task has.
TEST_F(WinogradLayerTest, LargeImages) {
  compare(geometryOf(1, 60, 61, 32, 32), 1);
  compare(geometryOf(3, 20, 20, 128, 64), 2);
}

// Layers whose tiles have either side, where the driver takes them.
TEST(WinogradModelTest, EqualsTheReference) {
  for (const uint32_t side : {16, 24}) {
    ModelBuilder builder;
    const Dimensions shape = {1, side, side, 32};
    const Dimensions weights = {48, 3, 3, 32};
    const uint32_t input = builder.input(kInt8, shape, 0.02f, -11);
    const uint32_t filter =
        builder.constant(kInt8, weights, randomBytes(countOf(weights), 2), 0.03f);
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {48},
                                           std::vector<int32_t>(48, -300), 0.02f * 0.03f);
    std::vector<uint32_t> inputs = {input, filter, bias};
    for (const int32_t value : {1, 1, 1, 0}) inputs.push_back(builder.scalar(value));
    builder.operation(OperationType::kConv2d, inputs,
                      {builder.output(kInt8, {1, side, side, 48}, 3.0f, 5)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {randomBytes(countOf(shape), 1)}, nullptr, 0), "");
  }
}

// Layers of other types have the right shape and enough tiles, but are not taken.
TEST(OtherLayersTest, EqualTheReference) {
  for (const bool isDepthwise : {false, true}) {
    const OperandType type = isDepthwise ? kInt8 : kFloat;
    ModelBuilder builder;
    const Dimensions shape = {1, 18, 17, 32};
    const uint32_t outputs = isDepthwise ? 64 : 32;
    const Dimensions weights =
        isDepthwise ? Dimensions{1, 3, 3, outputs} : Dimensions{outputs, 3, 3, 32};
    const float scale = isDepthwise ? 0.03f : 0.0f;
    std::vector<uint32_t> inputs = {builder.input(type, shape, scale)};
    if (isDepthwise) {
      inputs.push_back(builder.constant(type, weights, randomBytes(countOf(weights), 2), scale));
      inputs.push_back(builder.constant(OperandType::kTensorInt32, {outputs},
                                        std::vector<int32_t>(outputs, 300), scale * scale));
    } else {
      inputs.push_back(builder.constant(type, weights, randomFloats(countOf(weights), 2)));
      inputs.push_back(builder.constant(type, {outputs}, randomFloats(outputs, 3)));
    }
    for (const int32_t value : {1, 1, 1}) inputs.push_back(builder.scalar(value));
    if (isDepthwise) inputs.push_back(builder.scalar(2));
    inputs.push_back(builder.scalar(0));
    builder.operation(isDepthwise ? OperationType::kDepthwiseConv2d : OperationType::kConv2d,
                      inputs,
                      {builder.output(type, {1, 18, 17, outputs}, isDepthwise ? 0.1f : 0.0f)});
    const Bytes data = isDepthwise ? randomBytes(countOf(shape), 1) : floatsFor(shape, 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {data}, nullptr, 1e-5f), "");
  }
}

}  // namespace
}  // namespace hearth::cpu
