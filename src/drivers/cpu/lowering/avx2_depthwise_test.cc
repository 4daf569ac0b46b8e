// SPDX-License-Identifier: Apache-2.0
// Our depthwise convolution on AVX2 gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/avx2_depthwise.h"

#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"

namespace hearth::cpu {
namespace {

// An int8 sample as uint8: all numbers and zero points of activations are 128 larger, and weights
// have a zero point of their own.
struct Uint8Sample {
  Uint8Sample(const Int8ConvolutionSample& from, int32_t zero) : sample(from), weightZero(zero) {
    for (const int8_t value : from.input) input.push_back(static_cast<uint8_t>(value + 128));
    for (const int8_t value : from.filter) filter.push_back(static_cast<uint8_t>(value));
  }

  std::vector<uint8_t> onXnnpack() const {
    const Convolution& g = sample.g;
    xnn_operator_t raw = nullptr;
    EXPECT_EQ(
        xnn_create_convolution2d_nhwc_qu8(
            g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
            g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, 1, 1, g.groups, g.groups,
            static_cast<uint8_t>(sample.inputZero + 128), sample.inputScale,
            static_cast<uint8_t>(weightZero), sample.scales[0], filter.data(), sample.bias.data(),
            static_cast<uint8_t>(sample.outputZero + 128), sample.outputScale,
            static_cast<uint8_t>(sample.lowest + 128), static_cast<uint8_t>(sample.highest + 128),
            XNN_FLAG_DEPTHWISE_CONVOLUTION, nullptr, nullptr, &raw),
        xnn_status_success);
    const XnnOperator op(raw);
    return runXnnpackConvolution(op.get(), g, xnn_reshape_convolution2d_nhwc_qu8,
                                 xnn_setup_convolution2d_nhwc_qu8, input, sample.outputCount());
  }

  const Int8ConvolutionSample& sample;
  const int32_t weightZero;
  std::vector<uint8_t> input, filter;
};

class Avx2DepthwiseTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    if (!hasAvx2Dwconv(3, 3)) GTEST_SKIP() << "This CPU has no AVX2.";
    XnnpackComparisonTest::SetUp();
  }

  static Avx2Depthwise layerOf(const Int8ConvolutionSample& sample) {
    Avx2Depthwise layer;
    sample.describeTo(&layer);
    layer.product.kernelHeight = sample.g.kernelHeight;
    layer.product.kernelWidth = sample.g.kernelWidth;
    layer.product.channels = sample.g.groups;
    return layer;
  }

  // The kernel over weights that are packed into `packed`.
  static std::unique_ptr<Kernel> kernelOf(Avx2Depthwise layer, const Int8ConvolutionSample& sample,
                                          std::vector<uint8_t>* packed) {
    std::vector<float> factors;
    for (size_t i = 0; i < layer.product.channels; ++i)
      factors.push_back(sample.inputScale * sample.scales[layer.product.isSigned ? i : 0] /
                        sample.outputScale);
    packed->resize(avx2DwconvBytes(layer.product));
    packAvx2Dwconv(layer.product, reinterpret_cast<const uint8_t*>(sample.filter.data()),
                   sample.bias.data(), factors.data(), layer.inputZero, packed->data());
    layer.product.packed = packed->data();
    return makeAvx2DepthwiseKernel(layer);
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
    std::vector<uint8_t> packed;
    const auto kernel = kernelOf(layerOf(sample), sample, &packed);
    expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
      return sample.onKernel(kernel.get(), pool);
    });
  }

  // The same with uint8.
  void compareUint8(Convolution g, size_t channels, unsigned seed) {
    g.isDepthwise = true;
    g.groups = static_cast<uint32_t>(channels);
    g.groupInputChannels = g.groupOutputChannels = 1;
    findOutputSize(&g);
    const Int8ConvolutionSample sample(g, false, seed);
    constexpr int32_t kZeros[] = {0, 128, 151, 255};
    const Uint8Sample bytes(sample, kZeros[seed % 4]);
    const std::vector<uint8_t> expected = bytes.onXnnpack();
    Avx2Depthwise layer = layerOf(sample);
    layer.product.isSigned = false;
    layer.product.weightZero = bytes.weightZero;
    layer.product.outputZero += 128;
    layer.product.lowest += 128;
    layer.product.highest += 128;
    layer.inputZero += 128;
    std::vector<uint8_t> packed;
    const auto kernel = kernelOf(layer, sample, &packed);
    expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
      return runGuarded(kernel.get(), bytes.input, sample.outputCount(), pool);
    });
  }
};

TEST_F(Avx2DepthwiseTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  forRandomDepthwise(&random, [&](const Convolution& g, unsigned seed) {
    const uint32_t channels = randomNumber(&random, 1, 100);
    compare(g, channels, seed);
    compareUint8(g, channels, seed);
  });
}

TEST_F(Avx2DepthwiseTest, WidthsAndChannels) {
  forWidthsAndChannels(
      {1, 8, 15, 16, 17, 31, 32, 33, 48, 144},
      [&](const Convolution& g, size_t channels, unsigned seed) { compare(g, channels, seed); });
}

// All weights and inputs at their limits, where the sums are largest.
TEST_F(Avx2DepthwiseTest, Extremes) {
  Convolution g;
  g.inputHeight = g.inputWidth = 9;
  g.kernelHeight = g.kernelWidth = 5;
  g.groups = 20;
  g.isDepthwise = true;
  findOutputSize(&g);
  for (const int weight : {-128, 127})
    for (const int input : {-128, 127}) {
      Int8ConvolutionSample sample(g, true, 4);
      std::ranges::fill(sample.filter, static_cast<int8_t>(weight));
      std::ranges::fill(sample.input, static_cast<int8_t>(input));
      sample.outputScale *= 20;
      PackedWeights weights(true);
      const std::vector<int8_t> expected = sample.onXnnpack(&weights);
      std::vector<uint8_t> packed;
      const auto kernel = kernelOf(layerOf(sample), sample, &packed);
      EXPECT_EQ(sample.onKernel(kernel.get(), nullptr), expected) << weight << " " << input;
    }
}

TEST(Avx2DwconvTest, OtherWindowsHaveNone) {
  EXPECT_FALSE(hasAvx2Dwconv(3, 5));
  EXPECT_FALSE(hasAvx2Dwconv(7, 7));
  EXPECT_FALSE(hasAvx2Dwconv(1, 1));
}

}  // namespace
}  // namespace hearth::cpu
