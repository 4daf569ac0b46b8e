// SPDX-License-Identifier: Apache-2.0
// Windows are gathered as defined; int8 convolutions over few channels, which are products of
// windows, give the very bytes of XNNPACK's convolution.
#include "drivers/cpu/microkernels/portable/im2col.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "hal/cts/guarded_memory.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

size_t inputCount(const Convolution& g) {
  return g.batch * g.inputHeight * g.inputWidth * g.groups * g.groupInputChannels;
}

constexpr uint8_t kFill = 0x5A;

// The bytes of a group under the windows [first, last), by their definition.
Bytes windowsOf(const Convolution& g, const Bytes& input, size_t group, size_t first, size_t last) {
  Bytes bytes;
  const size_t channels = g.groups * g.groupInputChannels;
  for (size_t window = first; window < last; ++window) {
    const size_t image = window / (g.outputHeight * g.outputWidth);
    for (size_t ky = 0; ky < g.kernelHeight; ++ky) {
      for (size_t kx = 0; kx < g.kernelWidth; ++kx) {
        // Before the image these numbers wrap around to large ones.
        const size_t y = window / g.outputWidth % g.outputHeight * g.strideHeight +
                         ky * g.dilationHeight - g.top;
        const size_t x = window % g.outputWidth * g.strideWidth + kx * g.dilationWidth - g.left;
        const size_t pixel = (image * g.inputHeight + y) * g.inputWidth + x;
        for (size_t c = 0; c < g.groupInputChannels; ++c)
          bytes.push_back(y < g.inputHeight && x < g.inputWidth
                              ? input[pixel * channels + group * g.groupInputChannels + c]
                              : kFill);
      }
    }
  }
  return bytes;
}

TEST(WindowGatherTest, FollowsTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Convolution g = randomConvolution(&random, 12, 4, 3);
    g.groups = round % 3 == 0 ? randomNumber(&random, 2, 4) : 1;
    const Bytes input = randomBytes(inputCount(g), static_cast<unsigned>(round));
    // A read behind the input ends the process.
    const hal::cts::GuardedMemory guarded(input.size(), hal::cts::GuardedMemory::Place::kAtEnd);
    std::ranges::copy(input, guarded.data());
    const Im2col windows(g, 1, kFill);
    ASSERT_EQ(windows.windowCount(), g.batch * g.outputHeight * g.outputWidth);
    const size_t first = random() % windows.windowCount();
    const size_t last = first + 1 + random() % (windows.windowCount() - first);
    // The exact size, so that a sanitizer detects a write of one byte too many.
    Bytes made((last - first) * windows.windowBytes());
    if (g.groups == 1) {
      windows.gather(guarded.data(), first, last, made.data());
      ASSERT_EQ(made, windowsOf(g, input, 0, first, last));
    }
    for (size_t group = 0; group < g.groups; ++group) {
      std::ranges::fill(made, uint8_t{0});
      windows.gatherGroup(group, guarded.data(), first, last, made.data());
      ASSERT_EQ(made, windowsOf(g, input, group, first, last)) << "group " << group;
    }
  }
}

graph::Model modelOf(const Int8ConvolutionSample& sample) {
  using graph::OperandType;
  const Convolution& g = sample.g;
  hal::cts::ModelBuilder builder;
  const auto size = [](size_t value) {
    return static_cast<uint32_t>(value);
  };
  const uint32_t input = builder.input(
      OperandType::kTensorQuant8AsymmSigned,
      {size(g.batch), size(g.inputHeight), size(g.inputWidth), size(g.groupInputChannels)},
      sample.inputScale, sample.inputZero);
  const uint32_t filter = builder.constant(
      OperandType::kTensorQuant8SymmPerChannel,
      {size(g.groupOutputChannels), g.kernelHeight, g.kernelWidth, size(g.groupInputChannels)},
      sample.filter);
  const uint32_t bias =
      builder.constant(OperandType::kTensorInt32, {size(g.groupOutputChannels)}, sample.bias);
  std::vector<uint32_t> inputs = {input, filter, bias};
  for (const uint32_t value : {g.left, g.right, g.top, g.bottom, g.strideWidth, g.strideHeight, 0u})
    inputs.push_back(builder.scalar(static_cast<int32_t>(value)));
  inputs.push_back(builder.scalar(false));
  for (const uint32_t value : {g.dilationWidth, g.dilationHeight})
    inputs.push_back(builder.scalar(static_cast<int32_t>(value)));
  builder.operation(graph::OperationType::kConv2d, inputs,
                    {builder.output(OperandType::kTensorQuant8AsymmSigned,
                                    {size(g.batch), size(g.outputHeight), size(g.outputWidth),
                                     size(g.groupOutputChannels)},
                                    sample.outputScale, sample.outputZero)});
  graph::Model model = builder.model();
  model.main().operands[filter].perChannel.scales =
      std::span(sample.scales).first(g.groupOutputChannels);
  return model;
}

void expectBytesOfXnnpacksConvolution(const Convolution& g, unsigned seed) {
  Int8ConvolutionSample sample(g, true, seed);
  // The model has no activation.
  sample.lowest = -128;
  sample.highest = 127;
  PackedWeights weights(true);
  const Bytes expected = bytesOf(sample.onXnnpack(&weights));
  const auto both = runBoth(modelOf(sample), {bytesOf(sample.input)});
  ASSERT_TRUE(both) << both.error().toString();
  ASSERT_EQ(both->made[0], expected);
  // If all results were clamped, the comparison would prove little.
  if (expected.size() > 100) {
    EXPECT_GT(std::ranges::count_if(expected,
                                    [](uint8_t value) { return value != 0x7F && value != 0x80; }),
              static_cast<ptrdiff_t>(expected.size() / 4));
  }
}

TEST(WindowConvolutionTest, GivesTheBytesOfXnnpacksConvolution) {
  ASSERT_TRUE(initializeXnnpack());
  std::mt19937 random(2);
  for (unsigned round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    expectBytesOfXnnpacksConvolution(randomConvolution(&random, 16, 4, 3), round);
  }
}

// More windows than are gathered at a time, and no multiple of it.
TEST(WindowConvolutionTest, ManyWindowsAreComputedInBlocks) {
  ASSERT_TRUE(initializeXnnpack());
  Convolution g;
  g.kernelHeight = g.kernelWidth = 7;
  g.top = g.left = g.bottom = g.right = 3;
  g.groupInputChannels = 3;
  g.groupOutputChannels = 24;
  for (const size_t width : {67, 112}) {
    SCOPED_TRACE(width);
    g.batch = width == 67 ? 2 : 1;
    g.inputHeight = 61;
    g.inputWidth = width;
    findOutputSize(&g);
    expectBytesOfXnnpacksConvolution(g, 3);
  }
}

}  // namespace
}  // namespace hearth::cpu
