// SPDX-License-Identifier: Apache-2.0
// Our float32 convolutions with few output channels give the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/f32_narrow_convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The constructor computes the size of the output.
struct Sample {
  Sample(Convolution geometry, bool hasBias, bool isClamped, unsigned seed) {
    Convolution& g = layer.geometry;
    g = geometry;
    findOutputSize(&g);
    weights = randomFloats(
        g.groupOutputChannels * g.kernelHeight * g.kernelWidth * g.groupInputChannels, seed);
    bias = randomFloats(g.groupOutputChannels, seed + 1);
    input = randomFloats(g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels, seed + 2);
    layer.weights = weights.data();
    layer.bias = hasBias ? bias.data() : nullptr;
    layer.lowest = isClamped ? -0.5f : -kInfinity;
    layer.highest = isClamped ? 1.0f : kInfinity;
    layer.source = 0;
    layer.destination = 1;
  }

  size_t outputs() const {
    const Convolution& g = layer.geometry;
    return g.batch * g.outputHeight * g.outputWidth * g.groupOutputChannels;
  }

  std::vector<float> onXnnpack() const {
    const Convolution& g = layer.geometry;
    xnn_operator_t made = nullptr;
    EXPECT_EQ(xnn_create_convolution2d_nhwc_f32(
                  g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
                  g.strideWidth, g.dilationHeight, g.dilationWidth, 1, g.groupInputChannels,
                  g.groupOutputChannels, g.groupInputChannels, g.groupOutputChannels, layer.weights,
                  layer.bias, layer.lowest, layer.highest, 0, nullptr, nullptr, &made),
              xnn_status_success);
    const XnnOperator op(made);
    return runXnnpackConvolution(op.get(), g, xnn_reshape_convolution2d_nhwc_f32,
                                 xnn_setup_convolution2d_nhwc_f32, input, outputs());
  }

  std::vector<float> onOurs(threads::ThreadPool* pool) const {
    return runGuarded(makeF32NarrowKernel(layer).get(), input, outputs(), pool);
  }

  F32NarrowConvolution layer;
  std::vector<float> weights, bias, input;
};

// One that is taken: 3 x 3 over lines of 64 outputs.
Convolution window() {
  Convolution g;
  g.kernelHeight = g.kernelWidth = 3;
  g.inputHeight = 5;
  g.inputWidth = 66;
  findOutputSize(&g);
  return g;
}

class NarrowConvolutionTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (f32NarrowLanes() == 0) GTEST_SKIP() << "This CPU lacks AVX2 or FMA.";
    for (const size_t threads : {2, 3, 5})
      pools_.push_back(threads::ThreadPool::create(threads).value());
  }

  void compare(const Sample& sample, unsigned seed) {
    ASSERT_TRUE(hasF32Narrow(sample.layer.geometry)) << seed;
    const std::vector<float> expected = sample.onXnnpack();
    ASSERT_EQ(sample.onOurs(nullptr), expected) << seed;
    for (const auto& pool : pools_)
      ASSERT_EQ(sample.onOurs(pool.get()), expected)
          << seed << ", " << pool->threadCount() << " threads";
  }

  // A number of output channels that is taken, another one for each seed.
  static size_t columnsFor(unsigned seed) { return 1 + seed % (f32NarrowLanes() / 2); }

  std::vector<std::unique_ptr<threads::ThreadPool>> pools_;
};

TEST_F(NarrowConvolutionTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  const auto number = [&](uint32_t least, uint32_t most) {
    return randomNumber(&random, least, most);
  };
  unsigned tried = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Convolution g;
    g.batch = number(1, 2);
    g.strideHeight = number(1, 2);
    g.strideWidth = number(1, 3);
    g.kernelHeight = number(1, 7);
    g.kernelWidth = number(1, 12);
    g.dilationHeight = number(1, 2);
    g.dilationWidth = number(1, 3);
    g.inputHeight = (g.kernelHeight - 1) * g.dilationHeight + number(1, 20);
    g.inputWidth = (g.kernelWidth - 1) * g.dilationWidth + 16 * g.strideWidth + number(0, 150);
    // Windows may lie in the padding alone.
    g.top = number(0, 3);
    g.bottom = number(0, 3);
    g.left = number(0, 3);
    g.right = number(0, 3);
    g.groupInputChannels = seed % 3 == 0 ? 1 : number(1, 20);
    g.groupOutputChannels = columnsFor(seed);
    findOutputSize(&g);
    if (!hasF32Narrow(g)) continue;
    compare(Sample(g, seed % 5 != 0, seed % 4 == 0, seed), seed);
    ++tried;
  }
  EXPECT_GT(tried, 100u);
}

// Windows of one channel to one: XNNPACK adds those of up to 25 places column by column.
TEST_F(NarrowConvolutionTest, OneChannel) {
  unsigned seed = 0;
  for (const uint32_t height : {1, 3, 4, 5, 6})
    for (const uint32_t width : {3, 4, 5, 7, 25, 26}) {
      Convolution g = window();
      g.kernelHeight = height;
      g.kernelWidth = width;
      g.inputHeight = 9;
      g.left = g.right = g.top = 1;
      findOutputSize(&g);
      if (!hasF32Narrow(g)) continue;
      ++seed;
      compare(Sample(g, true, false, seed), seed);
    }
}

// A line is divided, and an image by lines.
TEST_F(NarrowConvolutionTest, LongLinesAndHighImages) {
  Convolution line;
  line.kernelWidth = 256;
  line.strideWidth = 2;
  line.inputWidth = 9001;
  compare(Sample(line, true, true, 1), 1);
  for (const size_t channels : {8, 33}) {
    Convolution image = window();
    image.kernelHeight = 7;
    image.kernelWidth = 5;
    image.inputHeight = 90;
    image.inputWidth = 88;
    image.top = image.bottom = 3;
    image.left = image.right = 2;
    image.groupInputChannels = channels;
    for (unsigned seed = 0; seed < f32NarrowLanes() / 2; ++seed) {
      image.groupOutputChannels = columnsFor(seed);
      compare(Sample(image, true, true, seed), seed);
    }
  }
}

// So many that lines are divided to keep the numbers of a task in the cache.
TEST_F(NarrowConvolutionTest, ManyChannels) {
  Convolution g = window();
  g.inputWidth = 300;
  g.groupInputChannels = 200;
  compare(Sample(g, true, true, 3), 3);
}

TEST_F(NarrowConvolutionTest, NotANumberStaysOne) {
  Sample sample(window(), true, true, 4);
  sample.input[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> output = sample.onOurs(nullptr);
  EXPECT_TRUE(std::isnan(output[0]));
  EXPECT_FALSE(std::isnan(output[1]));
}

TEST_F(NarrowConvolutionTest, OthersAreNotTaken) {
  EXPECT_TRUE(hasF32Narrow(window()));
  const auto isTakenWith = [](const auto& change) {
    Convolution g = window();
    change(&g);
    return hasF32Narrow(g);
  };
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->groupOutputChannels = 9; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->groupOutputChannels = 4; })) << "few places";
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->groups = 2; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->isDepthwise = true; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->outputWidth = 15; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->kernelHeight = 1; })) << "few places";
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->strideHeight = g->strideWidth = 2; }))
      << "few for the strides";
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->groupInputChannels = 512; })) << "much memory";
  // Of damaged files.
  constexpr uint32_t kMost = UINT32_MAX;
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->dilationHeight = kMost; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->dilationWidth = kMost; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->groupInputChannels = SIZE_MAX; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) { g->strideHeight = g->strideWidth = kMost; }));
  EXPECT_FALSE(isTakenWith([](Convolution* g) {
    g->kernelHeight = g->kernelWidth = g->dilationHeight = g->dilationWidth = kMost;
  }));
}

}  // namespace
}  // namespace hearth::cpu
