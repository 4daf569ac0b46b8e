// SPDX-License-Identifier: Apache-2.0
// Our int8 product on AMX gives the very bytes of XNNPACK's, for convolutions of any geometry.
#include "drivers/cpu/kernels/amx_layer.h"

#include "drivers/cpu/kernels/qs8_layer.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/weights/packed_panels.h"

namespace hearth::cpu {
namespace {

class AmxLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasAmxGemm()) GTEST_SKIP() << "XNNPACK packs for other instructions on this CPU.";
  }

  static AmxLayer layerOf(const Int8ConvolutionSample& sample) {
    const Convolution& g = sample.g;
    AmxLayer layer;
    sample.describeTo(&layer);
    const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
    layer.product.inputs = (inputs + kAmxGroup - 1) / kAmxGroup * kAmxGroup;
    layer.product.columns = g.groupOutputChannels;
    return layer;
  }

  // XNNPACK computes a last tile of one row wrongly where windows are not of single pixels.
  static bool isRightOnXnnpack(const Convolution& g) {
    return g.isOverPixels() || g.outputHeight * g.outputWidth % kAmxRows != 1;
  }

  void compare(const Int8ConvolutionSample& sample, unsigned seed) {
    PackedWeights weights(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&weights);
    const auto kernel = makeAmxLayerKernel(layerOf(sample), weights.bytesOf({}));
    ASSERT_TRUE(kernel) << kernel.error().toString();
    expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
      return sample.onKernel(kernel->get(), pool);
    });
  }

  void compare(const Convolution& g, unsigned seed) {
    compare(Int8ConvolutionSample(g, seed % 2 == 0, seed), seed);
  }
};

TEST_F(AmxLayerTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  unsigned tried = 0;
  for (unsigned round = 0; tried < 200; ++round) {
    Convolution g = randomConvolution(&random, 40, 3, 2);
    if (round % 2 == 0) g.groupInputChannels *= kAmxGroup;
    if (!isQs8Layer(g, kAmxGroup) || !isRightOnXnnpack(g)) continue;
    compare(g, round);
    ++tried;
  }
}

// Channels that fill tiles: without strides, inputs are read from a copy of the image.
TEST_F(AmxLayerTest, WindowsOverImages) {
  std::mt19937 random(2);
  unsigned tried = 0;
  for (unsigned round = 0; tried < 100; ++round) {
    Convolution g = randomConvolution(&random, 1, 4, round % 5 == 0 ? 2 : 1);
    g.groupInputChannels = randomNumber(&random, 1, 3) * kAmxInputs;
    if (!isRightOnXnnpack(g)) continue;
    compare(g, round);
    ++tried;
  }
}

// Outputs that do not need the whole image, so that windows do not begin at all its pixels.
TEST_F(AmxLayerTest, SurplusPadding) {
  Convolution g;
  g.inputHeight = 7;
  g.inputWidth = 9;
  g.groupInputChannels = kAmxInputs;
  g.groupOutputChannels = 20;
  g.kernelHeight = g.kernelWidth = 3;
  g.top = g.left = 1;
  g.bottom = g.right = 4;
  g.strideHeight = g.strideWidth = 2;
  findOutputSize(&g);
  compare(g, 3);
  g.strideWidth = 1;
  findOutputSize(&g);
  compare(g, 4);
}

TEST_F(AmxLayerTest, RowsAndColumns) {
  forRowsAndColumns({1, 2, 15, 16, 17, 31, 32, 33, 47, 49, 100, 300},
                    {1, 15, 16, 17, 32, 33, 48, 49, 63, 64, 65, 80, 130, 200},
                    [&](const Convolution& g, unsigned seed) { compare(g, seed); });
}

// Tiles read whole blocks of inputs, also at the end of a tensor with short rows.
TEST_F(AmxLayerTest, RowsOfAllLengths) {
  for (const size_t rows : {1, 16, 40, 177})
    for (size_t channels = 1; channels <= 140; ++channels) {
      Convolution g;
      g.batch = rows;
      g.groupInputChannels = channels;
      g.groupOutputChannels = 70;
      compare(g, static_cast<unsigned>(rows * 200 + channels));
    }
}

// The largest sums of both signs, and zero points at the ends of their range.
TEST_F(AmxLayerTest, ExtremeNumbers) {
  unsigned seed = 0;
  for (const int input : {-128, 127})
    for (const int weight : {-128, 127})
      for (const int32_t inputZero : {-128, 0, 127})
        for (const int32_t outputZero : {-128, 127})
          for (const uint32_t window : {1, 3}) {
            Convolution g;
            g.inputHeight = g.inputWidth = 6;
            g.groupInputChannels = 2 * kAmxInputs;
            g.groupOutputChannels = 72;
            g.kernelHeight = g.kernelWidth = window;
            g.top = g.bottom = g.left = g.right = window / 2;
            findOutputSize(&g);
            Int8ConvolutionSample sample(g, true, seed);
            std::ranges::fill(sample.input, static_cast<int8_t>(input));
            std::ranges::fill(sample.filter, static_cast<int8_t>(weight));
            sample.inputZero = inputZero;
            sample.outputZero = outputZero;
            sample.lowest = -128;
            sample.highest = 127;
            // Some results are within the range, and some far outside.
            sample.outputScale *= seed % 3 == 0 ? 30.0f : 1.0f;
            compare(sample, ++seed);
          }
}

TEST_F(AmxLayerTest, WindowsOfManyInputs) {
  compare(windowsOfManyInputs(), 7);
}

// More rows and inputs than one task takes.
TEST_F(AmxLayerTest, ManyTasks) {
  Convolution g;
  g.batch = 1100;
  g.groupInputChannels = 700;
  g.groupOutputChannels = 96;
  compare(g, 11);
  g = {};
  g.batch = 2;
  g.inputHeight = g.inputWidth = 37;
  g.groupInputChannels = 256;
  g.groupOutputChannels = 96;
  g.kernelHeight = g.kernelWidth = 3;
  g.top = g.left = 1;
  findOutputSize(&g);
  ASSERT_TRUE(isRightOnXnnpack(g));
  compare(g, 12);
}

TEST_F(AmxLayerTest, OtherPackingsAreNone) {
  Convolution g;
  g.groupInputChannels = 3;
  g.groupOutputChannels = 8;
  EXPECT_TRUE(isQs8Layer(g, kAmxGroup));
  g.kernelWidth = 2;
  EXPECT_FALSE(isQs8Layer(g, kAmxGroup));
  g.groupInputChannels = 4;
  EXPECT_TRUE(isQs8Layer(g, kAmxGroup));
}

TEST_F(AmxLayerTest, WeightsOfAnotherSizeAreRefused) {
  Convolution g;
  g.groupInputChannels = 8;
  g.groupOutputChannels = 64;
  const Int8ConvolutionSample sample(g, true, 9);
  PackedWeights weights(true);
  sample.onXnnpack(&weights);
  AmxLayer layer = layerOf(sample);
  layer.product.columns = 129;
  const auto kernel = makeAmxLayerKernel(layer, weights.bytesOf({}));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::cpu
