// SPDX-License-Identifier: Apache-2.0
// Our int8 product gives the very bytes of XNNPACK's, for convolutions of any geometry.
#include "drivers/cpu/kernels/qs8_layer.h"

#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

class Int8LayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasQs8Gemm()) GTEST_SKIP() << "XNNPACK packs for other instructions on this CPU.";
  }

  static Qs8Layer layerOf(const Int8ConvolutionSample& sample) {
    const Convolution& g = sample.g;
    Qs8Layer layer;
    sample.describeTo(&layer);
    const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
    layer.product.inputs = (inputs + kQs8Group - 1) / kQs8Group * kQs8Group;
    layer.product.columns = layer.product.outputStride = g.groupOutputChannels;
    return layer;
  }

  void compare(const Convolution& g, unsigned seed) {
    const Int8ConvolutionSample sample(g, seed % 2 == 0, seed);
    PackedWeights weights(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&weights);
    const auto kernel = makeQs8LayerKernel(layerOf(sample), weights.bytesOf({}));
    ASSERT_TRUE(kernel) << kernel.error().toString();
    expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
      return sample.onKernel(kernel->get(), pool);
    });
  }
};

TEST_F(Int8LayerTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  unsigned tried = 0;
  for (unsigned round = 0; tried < 200; ++round) {
    Convolution g = randomConvolution(&random, 40, 3, 2);
    if (round % 2 == 0) g.groupInputChannels *= kQs8Group;
    if (!isQs8Layer(g)) continue;
    compare(g, round);
    ++tried;
  }
}

TEST_F(Int8LayerTest, RowsAndColumns) {
  forRowsAndColumns({1, 2, 3, 5, 6, 7, 11, 12, 13, 49, 100, 300},
                    {1, 15, 16, 17, 33, 48, 64, 65, 80, 130},
                    [&](const Convolution& g, unsigned seed) { compare(g, seed); });
}

TEST_F(Int8LayerTest, WindowsOfManyInputs) {
  compare(windowsOfManyInputs(), 7);
}

TEST_F(Int8LayerTest, WeightsOfAnotherSizeAreRefused) {
  Convolution g;
  g.groupInputChannels = 8;
  g.groupOutputChannels = 16;
  const Int8ConvolutionSample sample(g, true, 9);
  PackedWeights weights(true);
  sample.onXnnpack(&weights);
  Qs8Layer layer = layerOf(sample);
  layer.product.columns = 17;
  const auto kernel = makeQs8LayerKernel(layer, weights.bytesOf({}));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code(), ErrorCode::kUnsupported);
}

TEST_F(Int8LayerTest, OtherPackingsAreNone) {
  Convolution g;
  g.groupInputChannels = 3;
  g.groupOutputChannels = 8;
  EXPECT_TRUE(isQs8Layer(g));
  g.kernelWidth = 2;
  EXPECT_FALSE(isQs8Layer(g));
  g.groupInputChannels = 8;
  EXPECT_TRUE(isQs8Layer(g));
  g.groups = 2;
  EXPECT_FALSE(isQs8Layer(g));
  g.groups = 1;
  g.isDepthwise = true;
  EXPECT_FALSE(isQs8Layer(g));
}

}  // namespace
}  // namespace hearth::cpu
