// SPDX-License-Identifier: Apache-2.0
// Our int8 depthwise convolution of one channel gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/qs8_one_channel.h"

#include <memory>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"

namespace hearth::cpu {
namespace {

class OneChannelTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasAvx512Vnni()) GTEST_SKIP() << "This CPU lacks AVX-512 VNNI.";
    for (const size_t threads : {2, 5})
      pools_.push_back(threads::ThreadPool::create(threads).value());
  }

  void compare(Convolution g, unsigned seed) {
    g.isDepthwise = true;
    ASSERT_TRUE(isOfOneChannel(g));
    const Int8ConvolutionSample sample(g, seed % 2 == 0, seed);
    PackedWeights weights(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&weights);

    Qs8Layer layer = oneChannelLayer(g);
    layer.product.outputZero = sample.outputZero;
    layer.product.lowest = sample.lowest;
    layer.product.highest = sample.highest;
    layer.inputZero = sample.inputZero;
    layer.destination = 1;
    std::vector<float> factors;
    for (size_t i = 0; i < g.groupOutputChannels; ++i)
      factors.push_back(sample.inputScale * sample.scales[i] / sample.outputScale);
    std::vector<uint8_t> packed(layer.product.panels() * layer.product.panelBytes());
    packOneChannel(layer, sample.filter.data(), sample.bias.data(), factors.data(), packed.data());
    const auto kernel = makeQs8LayerKernel(layer, packed);
    ASSERT_TRUE(kernel) << kernel.error().toString();
    const auto onOurs = [&](threads::ThreadPool* pool) {
      return sample.onKernel(kernel->get(), pool);
    };
    expectOnOneThreadAndOnThree(expected, seed, onOurs);
    for (const auto& pool : pools_) ASSERT_EQ(onOurs(pool.get()), expected) << seed;
  }

  std::vector<std::unique_ptr<threads::ThreadPool>> pools_;
};

TEST_F(OneChannelTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 150; ++seed) {
    Convolution g = randomConvolution(&random, 1, 6, 3);
    ++g.groupOutputChannels;
    compare(g, seed);
  }
}

// As in models that recognise words: 10 x 8 places of a spectrogram.
TEST_F(OneChannelTest, LargeWindows) {
  Convolution g;
  g.inputHeight = 49;
  g.inputWidth = 40;
  g.kernelHeight = 10;
  g.kernelWidth = 8;
  g.strideHeight = g.strideWidth = 2;
  g.top = 4;
  g.bottom = 5;
  g.left = g.right = 3;
  g.groupOutputChannels = 8;
  findOutputSize(&g);
  compare(g, 1);
}

TEST(OneChannelGeometryTest, OthersAreNotTaken) {
  Convolution g;
  g.isDepthwise = true;
  g.groupOutputChannels = 2;
  EXPECT_TRUE(isOfOneChannel(g));
  g.groups = 2;
  EXPECT_FALSE(isOfOneChannel(g));
  g.groups = 1;
  g.groupOutputChannels = 1;
  EXPECT_FALSE(isOfOneChannel(g));
  g.groupOutputChannels = 2;
  g.isDepthwise = false;
  EXPECT_FALSE(isOfOneChannel(g));
}

}  // namespace
}  // namespace hearth::cpu
