// SPDX-License-Identifier: Apache-2.0
// Our float32 depthwise convolution gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/f32_depthwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A convolution of `channelCount` channels. The constructor computes the size of the output.
struct Sample {
  Sample(Convolution geometry, size_t channelCount, bool hasBias, bool isClamped, unsigned seed)
      : channels(channelCount) {
    Convolution& g = layer.geometry;
    g = geometry;
    g.isDepthwise = true;
    g.groups = static_cast<uint32_t>(channels);
    g.groupInputChannels = g.groupOutputChannels = 1;
    findOutputSize(&g);
    weights = randomFloats(size_t{g.kernelHeight} * g.kernelWidth * channels, seed);
    bias = randomFloats(channels, seed + 1);
    input = randomFloats(g.batch * g.inputHeight * g.inputWidth * channels, seed + 2);
    layer.weights = weights.data();
    layer.bias = hasBias ? bias.data() : nullptr;
    layer.lowest = isClamped ? -0.5f : -kInfinity;
    layer.highest = isClamped ? 1.0f : kInfinity;
    layer.source = 0;
    layer.destination = 1;
  }

  size_t outputs() const {
    const Convolution& g = layer.geometry;
    return g.batch * g.outputHeight * g.outputWidth * channels;
  }

  std::vector<float> onXnnpack() const {
    const Convolution& g = layer.geometry;
    xnn_operator_t made = nullptr;
    EXPECT_EQ(xnn_create_convolution2d_nhwc_f32(
                  g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
                  g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, 1, 1, channels,
                  channels, layer.weights, layer.bias, layer.lowest, layer.highest,
                  XNN_FLAG_DEPTHWISE_CONVOLUTION, nullptr, nullptr, &made),
              xnn_status_success);
    const XnnOperator op(made);
    return runXnnpackConvolution(op.get(), g, xnn_reshape_convolution2d_nhwc_f32,
                                 xnn_setup_convolution2d_nhwc_f32, input, outputs());
  }

  std::vector<float> onOurs(threads::ThreadPool* pool) const {
    return runGuarded(makeF32DepthwiseKernel(layer).get(), input, outputs(), pool);
  }

  size_t channels;
  F32Depthwise layer;
  std::vector<float> weights, bias, input;
};

Convolution windowOf(uint32_t kernel) {
  Convolution g;
  g.isDepthwise = true;
  g.kernelHeight = g.kernelWidth = kernel;
  return g;
}

class FloatDepthwiseTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasF32Depthwise(windowOf(3))) GTEST_SKIP() << "This CPU lacks AVX2 or FMA.";
  }

  void compare(const Sample& sample, unsigned seed) {
    expectOnOneThreadAndOnThree(sample.onXnnpack(), seed,
                                [&](threads::ThreadPool* pool) { return sample.onOurs(pool); });
  }
};

TEST_F(FloatDepthwiseTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  forRandomDepthwise(&random, [&](const Convolution& g, unsigned seed) {
    const size_t channels = randomNumber(&random, 2, 100);
    compare(Sample(g, channels, seed % 5 != 0, seed % 4 == 0, seed), seed);
  });
}

TEST_F(FloatDepthwiseTest, WidthsAndChannels) {
  forWidthsAndChannels({2, 7, 8, 15, 16, 17, 31, 32, 33, 96, 144},
                       [&](const Convolution& g, size_t channels, unsigned seed) {
                         compare(Sample(g, channels, true, false, seed), seed);
                       });
}

// Lines are as long as one for each column of a step needs, shorter by one, and much longer.
TEST_F(FloatDepthwiseTest, DilatedLines) {
  unsigned seed = 0;
  for (const uint32_t kernel : {3u, 5u})
    for (const uint32_t dilation : {2u, 3u})
      for (const uint32_t outputs : {4 * dilation - 1, 4 * dilation, 4 * dilation + 1, 41u}) {
        Convolution g = windowOf(kernel);
        g.dilationHeight = g.dilationWidth = dilation;
        g.inputHeight = (kernel - 1) * dilation + 2;
        g.inputWidth = (kernel - 1) * dilation + outputs;
        for (const uint32_t padding : {0u, dilation})
          for (const size_t channels : {9u, 19u}) {  // for vectors of AVX2 and of AVX-512
            g.left = g.right = g.top = padding;
            ++seed;
            compare(Sample(g, channels, true, true, seed), seed);
          }
      }
}

// Large enough for tasks of several lines.
TEST_F(FloatDepthwiseTest, ManyLines) {
  Convolution g = windowOf(3);
  g.inputHeight = 70;
  g.inputWidth = 61;
  g.bottom = g.right = 1;
  compare(Sample(g, 96, true, true, 3), 3);
}

// Of few lines each thread gets as many channels of one.
TEST_F(FloatDepthwiseTest, LinesDividedByChannels) {
  unsigned seed = 0;
  for (const uint32_t kernel : {3u, 5u})
    for (const uint32_t lines : {1u, 4u, 7u})
      for (const size_t channels : {191u, 192u, 330u}) {
        Convolution g = windowOf(kernel);
        g.inputHeight = lines;
        g.inputWidth = 9;
        g.top = g.bottom = g.left = g.right = kernel / 2;
        ++seed;
        compare(Sample(g, channels, true, true, seed), seed);
      }
}

// Of any height and width, and of any place: with few outputs in a line, and with many.
TEST_F(FloatDepthwiseTest, OtherWindows) {
  std::mt19937 random(2);
  const auto number = [&](uint32_t least, uint32_t most) {
    return randomNumber(&random, least, most);
  };
  for (unsigned seed = 0; seed < 120; ++seed) {
    Convolution g;
    g.batch = number(1, 2);
    g.kernelHeight = number(1, 9);
    g.kernelWidth = number(g.kernelHeight == 1 ? 2 : 1, 9);
    g.strideHeight = number(1, 3);
    g.strideWidth = number(1, 3);
    g.dilationHeight = number(1, 2);
    g.dilationWidth = number(1, 2);
    g.inputHeight = (g.kernelHeight - 1) * g.dilationHeight + number(1, 4);
    g.inputWidth = (g.kernelWidth - 1) * g.dilationWidth + number(1, 40);
    // Windows may lie in the padding alone.
    g.top = number(0, 3);
    g.bottom = number(0, 3);
    g.left = number(0, 3);
    g.right = number(0, 3);
    compare(Sample(g, number(8, 50), seed % 5 != 0, seed % 4 == 0, seed), seed);
  }
}

TEST_F(FloatDepthwiseTest, NotANumberStaysOne) {
  Convolution g = windowOf(3);
  g.inputHeight = g.inputWidth = 8;
  Sample sample(g, 16, true, true, 4);
  sample.input[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> output = sample.onOurs(nullptr);
  EXPECT_TRUE(std::isnan(output[0]));
  EXPECT_FALSE(std::isnan(output[1]));
}

TEST_F(FloatDepthwiseTest, OtherGeometriesHaveNone) {
  EXPECT_TRUE(hasF32Depthwise(windowOf(5)));
  Convolution g = windowOf(7);
  g.groups = 8;
  EXPECT_TRUE(hasF32Depthwise(g));
  g.groups = 7;
  EXPECT_FALSE(hasF32Depthwise(g));
  g = windowOf(1);
  g.groups = 8;
  EXPECT_FALSE(hasF32Depthwise(g));
  g = windowOf(3);
  g.groupOutputChannels = 2;
  EXPECT_FALSE(hasF32Depthwise(g));
}

}  // namespace
}  // namespace hearth::cpu
