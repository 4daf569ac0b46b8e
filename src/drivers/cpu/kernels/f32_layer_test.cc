// SPDX-License-Identifier: Apache-2.0
// Our float32 product gives the very bytes of XNNPACK's, for convolutions and fully connected
// layers of any geometry.
#include "drivers/cpu/kernels/f32_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A layer whose weights XNNPACK packed, and the operator that packed them.
struct Layer {
  F32Layer layer;
  PackedWeights weights{true};
  std::vector<float> filter, bias;
  XnnOperator op;
};

void makeConvolution(const Convolution& g, float lowest, float highest, unsigned seed,
                     Layer* made) {
  const size_t taps = size_t{g.kernelHeight} * g.kernelWidth;
  const size_t inputs = g.groups * g.groupInputChannels;
  const size_t outputs = g.groups * g.groupOutputChannels;
  made->filter = randomFloats(outputs * taps * g.groupInputChannels, seed);
  made->bias = randomFloats(outputs, seed + 1);
  xnn_operator_t op = nullptr;
  const xnn_status status = made->weights.create({}, "CONV_2D", nullptr, [&] {
    return xnn_create_convolution2d_nhwc_f32(
        g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
        g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
        g.groupOutputChannels, inputs, outputs, made->filter.data(), made->bias.data(), lowest,
        highest, 0, nullptr, made->weights.provider(), &op);
  });
  ASSERT_EQ(status, xnn_status_success);
  made->op.reset(op);
  made->layer.geometry = g;
  made->layer.product.taps = taps;
  made->layer.product.channels = g.groupInputChannels;
  made->layer.product.columns = g.groupOutputChannels;
  made->layer.product.outputStride = outputs;
  made->layer.product.lowest = lowest;
  made->layer.product.highest = highest;
  made->layer.source = 0;
  made->layer.destination = 1;
}

Convolution overPixels(size_t batch, size_t inputs, size_t outputs) {
  Convolution g;
  g.batch = batch;
  g.groupInputChannels = inputs;
  g.groupOutputChannels = outputs;
  return g;
}

std::vector<float> onXnnpack(const Layer& made, const std::vector<float>& input, size_t outputs) {
  return runXnnpackConvolution(made.op.get(), made.layer.geometry,
                               xnn_reshape_convolution2d_nhwc_f32, xnn_setup_convolution2d_nhwc_f32,
                               input, outputs);
}

std::vector<float> onOurs(const Layer& made, const std::vector<float>& input, size_t outputs,
                          threads::ThreadPool* pool) {
  const auto kernel = makeF32LayerKernel(made.layer, made.weights.bytesOf({}));
  EXPECT_TRUE(kernel) << kernel.error().toString();
  return kernel ? runGuarded(kernel->get(), input, outputs, pool) : std::vector<float>();
}

class FloatLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasF32Gemm()) GTEST_SKIP() << "XNNPACK packs for other instructions on this CPU.";
  }

  void compare(const Layer& made, const std::vector<float>& input, size_t outputs, unsigned seed) {
    expectOnOneThreadAndOnThree(
        onXnnpack(made, input, outputs), seed,
        [&](threads::ThreadPool* pool) { return onOurs(made, input, outputs, pool); });
  }
};

TEST_F(FloatLayerTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 150; ++round) {
    const Convolution g = randomConvolution(&random, 40, 3, 2);
    const bool isClamped = round % 3 == 0;
    Layer made;
    makeConvolution(g, isClamped ? -0.5f : -kInfinity, isClamped ? 1.0f : kInfinity, round, &made);
    const std::vector<float> input =
        randomFloats(g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels, round + 1000);
    compare(made, input, g.batch * g.outputHeight * g.outputWidth * g.groupOutputChannels, round);
  }
}

TEST_F(FloatLayerTest, GroupsAreThoseOfXnnpack) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 100; ++round) {
    Convolution g = randomConvolution(&random, 20, 3, 2);
    g.groups = randomNumber(&random, 2, 5);
    ++g.groupInputChannels;
    if (round % 4 == 0) {
      g.kernelHeight = g.kernelWidth = g.strideHeight = g.strideWidth = 1;
      g.top = g.bottom = g.left = g.right = 0;
      findOutputSize(&g);
    }
    ASSERT_TRUE(isF32Layer(g));
    Layer made;
    makeConvolution(g, -kInfinity, round % 3 == 0 ? 1.0f : kInfinity, round, &made);
    const std::vector<float> input = randomFloats(
        g.batch * g.inputHeight * g.inputWidth * g.groups * g.groupInputChannels, round + 1000);
    compare(made, input,
            g.batch * g.outputHeight * g.outputWidth * g.groups * g.groupOutputChannels, round);
  }
}

TEST_F(FloatLayerTest, RowsOfAFullyConnectedLayer) {
  for (const size_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 47, 49, 100})
    for (const size_t columns : {1, 7, 8, 15, 16, 33, 64, 130}) {
      Layer made;
      makeConvolution(overPixels(rows, 37, columns), -kInfinity, kInfinity,
                      static_cast<unsigned>(rows), &made);
      const auto seed = static_cast<unsigned>(columns);
      compare(made, randomFloats(rows * 37, seed), rows * columns, seed);
    }
}

// Around the sizes of tiles of rows that lie evenly apart, and with any number of columns left.
TEST_F(FloatLayerTest, RowsOfPixels) {
  for (const size_t rows : {9, 10, 11, 27, 28, 29, 57, 139, 141, 300})
    for (const size_t columns : {1, 8, 15, 16, 17, 31, 32, 33, 48, 49, 96})
      for (const size_t channels : {2, 3, 16, 40}) {
        const auto seed = static_cast<unsigned>(rows * columns + channels);
        Layer made;
        makeConvolution(overPixels(rows, channels, columns), 0, 1, seed, &made);
        compare(made, randomFloats(rows * channels, seed + 1), rows * columns, seed);
      }
}

// Lines of the first convolution of a network: longer than a task, padded on any side or none, and
// with rows of a window that lie apart.
TEST_F(FloatLayerTest, LinesOfFewChannels) {
  std::mt19937 random(3);
  const auto number = [&](uint32_t least, uint32_t most) {
    return randomNumber(&random, least, most);
  };
  for (unsigned round = 0; round < 100; ++round) {
    Convolution g;
    g.batch = number(1, 2);
    g.kernelHeight = number(1, 5);
    g.kernelWidth = number(1, 5);
    g.strideHeight = number(1, 3);
    g.strideWidth = number(1, 3);
    g.dilationHeight = number(1, 2);
    g.inputHeight = number(9, 14);
    g.inputWidth = number(20, 330);
    g.groupInputChannels = number(1, 5);
    g.groupOutputChannels = number(2, 40);
    // Windows may lie in the padding alone.
    g.top = number(0, 4);
    g.bottom = number(0, 4);
    g.left = number(0, 4);
    g.right = number(0, 4);
    findOutputSize(&g);
    Layer made;
    makeConvolution(g, round % 2 == 0 ? -0.5f : -kInfinity, kInfinity, round, &made);
    const std::vector<float> input =
        randomFloats(g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels, round + 1000);
    compare(made, input, g.batch * g.outputHeight * g.outputWidth * g.groupOutputChannels, round);
  }
}

// Very large windows are computed a few rows at a time.
TEST_F(FloatLayerTest, LargeWindows) {
  for (const size_t channels : {3, 16}) {
    Convolution g;
    g.inputHeight = g.inputWidth = 30;
    g.groupInputChannels = channels;
    g.groupOutputChannels = 17;
    g.kernelHeight = g.kernelWidth = 90;
    g.top = g.left = 44;
    g.bottom = g.right = 45;
    g.outputHeight = g.outputWidth = 30;
    Layer made;
    makeConvolution(g, -kInfinity, kInfinity, 11, &made);
    compare(made, randomFloats(30 * 30 * channels, 12), size_t{30} * 30 * 17,
            static_cast<unsigned>(channels));
  }
}

// The product of strides and channels does not fit in 64 bits.
TEST_F(FloatLayerTest, StridesOfAnySize) {
  Convolution g = overPixels(1, 4, 20000);
  g.strideHeight = g.strideWidth = 1u << 30;
  Layer made;
  makeConvolution(g, -kInfinity, kInfinity, 3, &made);
  compare(made, randomFloats(4, 4), 20000, 5);
}

// The panels do not fit in a cache together, nor do the rows.
TEST_F(FloatLayerTest, SeveralBlocksOfPanelsAndRows) {
  for (const size_t rows : {1, 2, 7, 13, 15, 49, 700}) {
    Layer made;
    makeConvolution(overPixels(rows, 402, 310), -kInfinity, kInfinity, 1, &made);
    const auto seed = static_cast<unsigned>(rows);
    compare(made, randomFloats(rows * 402, seed), rows * 310, seed);
  }
  Convolution g;
  g.inputHeight = g.inputWidth = g.outputHeight = g.outputWidth = 9;
  g.groupInputChannels = 67;
  g.groupOutputChannels = 310;
  g.kernelHeight = g.kernelWidth = 3;
  g.top = g.bottom = g.left = g.right = 1;
  Layer made;
  makeConvolution(g, 0, kInfinity, 2, &made);
  compare(made, randomFloats(size_t{9} * 9 * 67, 3), size_t{9} * 9 * 310, 3);
}

TEST_F(FloatLayerTest, ChannelsOfALargerLayer) {
  Layer made;
  makeConvolution(overPixels(9, 20, 24), -kInfinity, kInfinity, 5, &made);
  const std::vector<float> input = randomFloats(9 * 20, 6);
  const std::vector<float> part = onXnnpack(made, input, 9 * 24);
  // The kernel computes the channels from 64 on of a layer with 100 channels.
  made.layer.product.outputStride = 100;
  made.layer.outputOffset = 64;
  const std::vector<float> output = onOurs(made, input, 9 * 100, pool_.get());
  for (size_t row = 0; row < 9; ++row)
    for (size_t column = 0; column < 100; ++column) {
      const bool isOfPart = column >= 64 && column < 88;
      ASSERT_EQ(output[row * 100 + column],
                isOfPart ? part[row * 24 + column - 64] : kUntouched<float>)
          << row << " " << column;
    }
}

// What XNNPACK's convolution and an addition after it give.
std::vector<float> sumsOf(std::vector<float> results, const std::vector<float>& addend,
                          const F32Gemm& product) {
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = std::clamp(results[i] + addend[i], product.lowest, product.highest);
  return results;
}

// The addend is in the memory of the output.
TEST_F(FloatLayerTest, AdditionsInPlace) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 60; ++round) {
    const Convolution g = randomConvolution(&random, 40, 3, 2);
    Layer made;
    makeConvolution(g, -kInfinity, kInfinity, round, &made);
    const std::vector<float> input =
        randomFloats(g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels, round + 1000);
    const size_t outputs = g.batch * g.outputHeight * g.outputWidth * g.groupOutputChannels;
    made.layer.addend = made.layer.destination;
    if (round % 2 == 0) made.layer.product.lowest = kUntouched<float>;
    if (round % 3 == 0) made.layer.product.highest = kUntouched<float> + 1;
    const std::vector<float> expected =
        sumsOf(onXnnpack(made, input, outputs), std::vector<float>(outputs, kUntouched<float>),
               made.layer.product);
    expectOnOneThreadAndOnThree(expected, round, [&](threads::ThreadPool* pool) {
      return onOurs(made, input, outputs, pool);
    });
  }
}

// The addend is what the layer reads.
TEST_F(FloatLayerTest, AdditionsOfTheInput) {
  for (const size_t rows : {1, 2, 3, 5, 6, 13, 14, 15, 49, 200})
    for (const size_t channels : {8, 15, 16, 24, 32, 33, 64, 130}) {
      const auto seed = static_cast<unsigned>(channels);
      Layer made;
      makeConvolution(overPixels(rows, channels, channels), -kInfinity, kInfinity, seed, &made);
      const std::vector<float> input = randomFloats(rows * channels, seed + 1);
      made.layer.addend = made.layer.source;
      made.layer.product.lowest = 0;
      const std::vector<float> expected =
          sumsOf(onXnnpack(made, input, rows * channels), input, made.layer.product);
      expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
        return onOurs(made, input, rows * channels, pool);
      });
    }
}

// Slopes are of the columns of each group, and follow the addition.
TEST_F(FloatLayerTest, SlopesOfNegativeSums) {
  for (const size_t rows : {1, 2, 5, 13, 29, 60})
    for (const size_t columns : {7, 15, 16, 17, 32, 40, 70})
      for (const uint32_t groups : {1, 2}) {
        const auto seed = static_cast<unsigned>(rows * columns);
        Convolution g = overPixels(rows, 9, columns);
        g.groups = groups;
        Layer made;
        makeConvolution(g, -kInfinity, kInfinity, seed, &made);
        const size_t outputs = groups * columns;
        std::vector<float> input = randomFloats(rows * groups * 9, seed + 1);
        std::vector<float> expected =
            sumsOf(onXnnpack(made, input, rows * outputs),
                   std::vector<float>(rows * outputs, -1.0f), made.layer.product);
        const std::vector<float> slopes = randomFloats(outputs, seed + 2);
        for (size_t i = 0; i < expected.size(); ++i)
          if (expected[i] < 0) expected[i] *= slopes[i % outputs];
        made.layer.addend = 2;
        made.layer.slopes = 3;
        const auto kernel = makeF32LayerKernel(made.layer, made.weights.bytesOf({}));
        ASSERT_TRUE(kernel);
        for (threads::ThreadPool* const pool :
             {static_cast<threads::ThreadPool*>(nullptr), pool_.get()}) {
          std::vector<float> output(rows * outputs), addend(rows * outputs, -1.0f);
          std::vector<float> ofSlopes = slopes;
          void* const addresses[] = {input.data(), output.data(), addend.data(), ofSlopes.data()};
          ASSERT_TRUE((*kernel)->reshape(pool));
          ASSERT_TRUE((*kernel)->setup(addresses, nullptr));
          ASSERT_TRUE((*kernel)->run(pool));
          ASSERT_EQ(output, expected) << rows << " " << columns << " " << groups;
        }
      }
}

TEST_F(FloatLayerTest, NotANumberStaysOne) {
  Layer made;
  makeConvolution(overPixels(7, 3, 5), 0, 6, 7, &made);
  std::vector<float> input = randomFloats(21, 8);
  input[4] = std::numeric_limits<float>::quiet_NaN();
  input[9] = kInfinity;
  const std::vector<float> output = onOurs(made, input, 35, nullptr);
  for (size_t i = 0; i < 35; ++i) {
    if (i / 5 == 1) {
      EXPECT_TRUE(std::isnan(output[i])) << i;
    }
    if (i / 5 == 3) {
      EXPECT_TRUE(output[i] == 0 || output[i] == 6) << i;
    }
  }
}

TEST_F(FloatLayerTest, WeightsOfAnotherSizeAreRefused) {
  Convolution g;
  g.groupInputChannels = 8;
  g.groupOutputChannels = 16;
  Layer made;
  makeConvolution(g, -kInfinity, kInfinity, 9, &made);
  made.layer.product.columns = f32Tile().columns + 1;
  const auto kernel = makeF32LayerKernel(made.layer, made.weights.bytesOf({}));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::cpu
