// SPDX-License-Identifier: Apache-2.0
// Our int8 product on AMX gives the very bytes of XNNPACK's, for convolutions of any geometry.
#include "drivers/cpu/kernels/amx_layer.h"

#include <cstring>

#include "drivers/cpu/kernels/qs8_layer.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/weights/xnnpack_panels.h"
#include "hal/cts/guarded_memory.h"

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

// Sanitizers do not see what tiles read and write.
TEST_F(AmxLayerTest, NothingBehindTensorsWeightsAndScratchMemoryIsTouched) {
  using hal::cts::GuardedMemory;
  const auto guarded = [](const void* bytes, size_t size) {
    GuardedMemory memory(size, GuardedMemory::Place::kAtEnd);
    if (bytes != nullptr) std::memcpy(memory.data(), bytes, size);
    return memory;
  };
  const auto run = [&](const Convolution& g) {
    if (!isQs8Layer(g, kAmxGroup)) return;
    const Int8ConvolutionSample sample(g, true, 5);
    PackedWeights weights(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&weights);
    const AmxLayer layer = layerOf(sample);
    const size_t packedBytes = layer.product.panels() * layer.product.panelBytes();
    const GuardedMemory packed = guarded(weights.bytesOf({}).data(), packedBytes);
    const auto kernel = makeAmxLayerKernel(layer, {packed.data(), packedBytes});
    ASSERT_TRUE(kernel) << kernel.error().toString();
    const GuardedMemory scratch = guarded(nullptr, (*kernel)->reshape(nullptr).value());
    const GuardedMemory input = guarded(sample.input.data(), sample.input.size());
    const GuardedMemory output = guarded(nullptr, expected.size());
    void* const addresses[] = {input.data(), output.data()};
    ASSERT_TRUE((*kernel)->setup(addresses, scratch.data()));
    ASSERT_TRUE((*kernel)->run(nullptr));
    EXPECT_EQ(std::memcmp(output.data(), expected.data(), expected.size()), 0)
        << g.batch << " rows, " << g.groupInputChannels << " to " << g.groupOutputChannels
        << " channels, stride " << g.strideHeight << ", padding " << g.top;
  };
  for (const size_t rows : {1, 15, 16, 17, 50, 64})
    for (const size_t channels : {1, 3, 4, 17, 63, 64, 65, 128, 140})
      for (const size_t columns : {1, 16, 33, 70, 128}) {
        Convolution g;
        g.batch = rows;
        g.groupInputChannels = channels;
        g.groupOutputChannels = columns;
        run(g);
      }
  for (const size_t channels : {4, 20, 64, 128})
    for (const uint32_t stride : {1, 2})
      for (const uint32_t padding : {0, 1}) {
        Convolution g;
        g.batch = 2;
        g.inputHeight = 8;
        g.inputWidth = 6;
        g.groupInputChannels = channels;
        g.groupOutputChannels = 40;
        g.kernelHeight = g.kernelWidth = 3;
        g.strideHeight = g.strideWidth = stride;
        g.top = g.bottom = g.left = g.right = padding;
        findOutputSize(&g);
        run(g);
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
