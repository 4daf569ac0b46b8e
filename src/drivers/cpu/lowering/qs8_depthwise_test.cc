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
    ASSERT_TRUE(setQs8Window(g, &layer.product));
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

// Of any height and width, and of any place: with few outputs in a line, and with many.
TEST_F(DepthwiseLayerTest, OtherWindows) {
  std::mt19937 random(2);
  const auto number = [&](uint32_t least, uint32_t most) {
    return randomNumber(&random, least, most);
  };
  for (unsigned seed = 0; seed < 150; ++seed) {
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
    compare(g, number(1, 140), seed);
  }
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

TEST(DepthwiseProductTest, WindowsOfSeveralPlacesHaveCode) {
  EXPECT_FALSE(hasDepthwisePlaces(1));
  EXPECT_EQ(hasDepthwisePlaces(2), hasAvx512Vnni());
  EXPECT_FALSE(hasDepthwisePlaces(size_t{1} << 30));
}

}  // namespace
}  // namespace hearth::cpu
