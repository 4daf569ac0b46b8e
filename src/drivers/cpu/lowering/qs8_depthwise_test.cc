// SPDX-License-Identifier: Apache-2.0
// Our int8 depthwise convolution gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/qs8_depthwise.h"

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"

namespace hearth::cpu {
namespace {

class DepthwiseLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasDepthwiseProduct(3, 3)) GTEST_SKIP() << "This CPU lacks AVX-512 VNNI.";
  }

  // Compares a convolution of `channels` groups of one channel; computes the size of the output.
  void compare(Convolution g, size_t channels, unsigned seed) {
    g.isDepthwise = true;
    g.groups = static_cast<uint32_t>(channels);
    g.groupInputChannels = g.groupOutputChannels = 1;
    findOutputSize(&g);
    const Int8ConvolutionSample sample(g, seed % 2 == 0, seed);
    PackedWeights weights(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&weights);

    Qs8Depthwise layer;
    sample.describeTo(&layer);
    layer.product.kernelHeight = g.kernelHeight;
    layer.product.kernelWidth = g.kernelWidth;
    layer.product.channels = channels;
    std::vector<float> factors;
    for (size_t i = 0; i < channels; ++i)
      factors.push_back(sample.inputScale * sample.scales[i] / sample.outputScale);
    std::vector<uint8_t> packed(depthwisePackedBytes(layer.product));
    packDepthwise(layer.product, sample.filter.data(), sample.bias.data(), factors.data(),
                  sample.inputZero, packed.data());
    layer.product.packed = packed.data();
    const auto kernel = makeQs8DepthwiseKernel(layer);
    expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
      return sample.onKernel(kernel.get(), pool);
    });
  }
};

TEST_F(DepthwiseLayerTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  forRandomDepthwise(&random, [&](const Convolution& g, unsigned seed) {
    compare(g, randomNumber(&random, 1, 200), seed);
  });
}

TEST_F(DepthwiseLayerTest, WidthsAndChannels) {
  forWidthsAndChannels(
      {1, 31, 32, 33, 63, 64, 65, 96, 97, 144},
      [&](const Convolution& g, size_t channels, unsigned seed) { compare(g, channels, seed); });
}

// Large enough for tasks of several lines.
TEST_F(DepthwiseLayerTest, ManyLines) {
  Convolution g;
  g.inputHeight = 70;
  g.inputWidth = 61;
  g.kernelHeight = g.kernelWidth = 3;
  g.bottom = g.right = 1;
  compare(g, 96, 3);
}

TEST(DepthwiseProductTest, UsualWindowsHaveOne) {
  EXPECT_EQ(hasDepthwiseProduct(3, 3), hasAvx512Vnni());
  EXPECT_EQ(hasDepthwiseProduct(5, 5), hasAvx512Vnni());
}

TEST(DepthwiseProductTest, OtherWindowsHaveNone) {
  EXPECT_FALSE(hasDepthwiseProduct(3, 5));
  EXPECT_FALSE(hasDepthwiseProduct(7, 7));
  EXPECT_FALSE(hasDepthwiseProduct(1, 1));
}

}  // namespace
}  // namespace hearth::cpu
