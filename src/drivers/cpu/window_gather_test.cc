// SPDX-License-Identifier: Apache-2.0
// Windows are gathered as the definition says, and int8 convolutions over few channels, which are
// products of them, give the very bytes that XNNPACK's convolution gives.
#include "drivers/cpu/window_gather.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <algorithm>
#include <random>

#include "drivers/cpu/machine.h"
#include "drivers/cpu/reference_comparison.h"
#include "drivers/cpu/xnn_kernel.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

Convolution randomConvolution(std::mt19937* random, size_t mostChannels) {
  const auto number = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>((*random)() % (most - least + 1));
  };
  Convolution g;
  g.batch = number(1, 3);
  g.inputHeight = number(8, 20);
  g.inputWidth = number(8, 20);
  g.groupInputChannels = number(1, static_cast<uint32_t>(mostChannels));
  g.groupOutputChannels = number(1, 70);
  g.kernelHeight = number(1, 4);
  g.kernelWidth = number(2, 4);
  g.strideHeight = number(1, 3);
  g.strideWidth = number(1, 3);
  g.dilationHeight = number(1, 2);
  g.dilationWidth = number(1, 2);
  g.top = number(0, 3);
  g.bottom = number(0, 3);
  g.left = number(0, 3);
  g.right = number(0, 3);
  const auto outputSize = [](size_t input, uint32_t padding, uint32_t kernel, uint32_t dilation,
                             uint32_t stride) {
    return (input + padding - (kernel - 1) * dilation - 1) / stride + 1;
  };
  g.outputHeight =
      outputSize(g.inputHeight, g.top + g.bottom, g.kernelHeight, g.dilationHeight, g.strideHeight);
  g.outputWidth =
      outputSize(g.inputWidth, g.left + g.right, g.kernelWidth, g.dilationWidth, g.strideWidth);
  return g;
}

size_t inputCount(const Convolution& g) {
  return g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels;
}

TEST(WindowGatherTest, FollowsTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const Convolution g = randomConvolution(&random, 12);
    const Bytes input = randomBytes(inputCount(g), static_cast<unsigned>(round));
    constexpr uint8_t kFill = 0x5A;
    const WindowGather windows(g, 1, kFill);
    ASSERT_EQ(windows.windowCount(), g.batch * g.outputHeight * g.outputWidth);
    const size_t first = random() % windows.windowCount();
    const size_t last = first + 1 + random() % (windows.windowCount() - first);
    Bytes expected;
    for (size_t window = first; window < last; ++window) {
      const size_t image = window / (g.outputHeight * g.outputWidth);
      for (size_t ky = 0; ky < g.kernelHeight; ++ky) {
        for (size_t kx = 0; kx < g.kernelWidth; ++kx) {
          // Beyond the ends these numbers wrap to great ones.
          const size_t y = window / g.outputWidth % g.outputHeight * g.strideHeight +
                           ky * g.dilationHeight - g.top;
          const size_t x = window % g.outputWidth * g.strideWidth + kx * g.dilationWidth - g.left;
          for (size_t c = 0; c < g.groupInputChannels; ++c)
            expected.push_back(y < g.inputHeight && x < g.inputWidth
                                   ? input[((image * g.inputHeight + y) * g.inputWidth + x) *
                                               g.groupInputChannels +
                                           c]
                                   : kFill);
        }
      }
    }
    // Exact size, so that a sanitizer sees the first byte too many.
    Bytes made((last - first) * windows.windowBytes());
    windows.gather(input.data(), first, last, made.data());
    ASSERT_EQ(made, expected) << round;
  }
}

constexpr float kInputScale = 0.02f;
constexpr int32_t kInputZero = -7;
constexpr int32_t kOutputZero = 5;

struct Constants {
  std::vector<int8_t> filter;
  std::vector<int32_t> bias;
  std::vector<float> scales;
  float outputScale = 0.6f;
};

Constants constantsFor(const Convolution& g, unsigned seed) {
  Constants constants;
  const Bytes filter = randomBytes(
      g.groupOutputChannels * g.kernelHeight * g.kernelWidth * g.groupInputChannels, seed);
  for (const uint8_t value : filter) constants.filter.push_back(static_cast<int8_t>(value));
  for (size_t i = 0; i < g.groupOutputChannels; ++i) {
    constants.bias.push_back(static_cast<int32_t>(i * 97 % 2000) - 1000);
    constants.scales.push_back(0.01f + 0.0003f * static_cast<float>(i));
  }
  return constants;
}

Bytes onXnnpack(const Convolution& g, const Constants& constants, const Bytes& input) {
  std::vector<float> scales = constants.scales;
  scales.resize(scales.size() + XNN_EXTRA_QUANTIZATION_PARAMS, scales.back());
  xnn_operator_t raw = nullptr;
  EXPECT_EQ(xnn_create_convolution2d_nhwc_qs8_qc8w(
                g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
                g.strideWidth, g.dilationHeight, g.dilationWidth, 1, g.groupInputChannels,
                g.groupOutputChannels, g.groupInputChannels, g.groupOutputChannels, kInputZero,
                kInputScale, scales.data(), constants.filter.data(), constants.bias.data(),
                kOutputZero, constants.outputScale, -128, 127, 0, nullptr, nullptr, &raw),
            xnn_status_success);
  const XnnOperator op(raw);
  size_t workspaceSize = 0, alignment = 0, height = 0, width = 0;
  EXPECT_EQ(
      xnn_reshape_convolution2d_nhwc_qs8_qc8w(op.get(), g.batch, g.inputHeight, g.inputWidth,
                                              &workspaceSize, &alignment, &height, &width, nullptr),
      xnn_status_success);
  Bytes workspace(workspaceSize + alignment + 1);
  void* aligned = workspace.data();
  size_t room = workspace.size();
  if (alignment != 0) std::align(alignment, workspaceSize, aligned, room);
  Bytes output(g.batch * height * width * g.groupOutputChannels + XNN_EXTRA_BYTES);
  EXPECT_EQ(xnn_setup_convolution2d_nhwc_qs8_qc8w(op.get(), aligned,
                                                  reinterpret_cast<const int8_t*>(input.data()),
                                                  reinterpret_cast<int8_t*>(output.data())),
            xnn_status_success);
  EXPECT_EQ(xnn_run_operator(op.get(), nullptr), xnn_status_success);
  output.resize(output.size() - XNN_EXTRA_BYTES);
  return output;
}

graph::Model modelOf(const Convolution& g, const Constants& constants) {
  using graph::OperandType;
  hal::cts::ModelBuilder builder;
  const auto size = [](size_t value) {
    return static_cast<uint32_t>(value);
  };
  const uint32_t input = builder.input(
      OperandType::kTensorQuant8AsymmSigned,
      {size(g.batch), size(g.inputHeight), size(g.inputWidth), size(g.groupInputChannels)},
      kInputScale, kInputZero);
  const uint32_t filter = builder.constant(
      OperandType::kTensorQuant8SymmPerChannel,
      {size(g.groupOutputChannels), g.kernelHeight, g.kernelWidth, size(g.groupInputChannels)},
      constants.filter);
  const uint32_t bias =
      builder.constant(OperandType::kTensorInt32, {size(g.groupOutputChannels)}, constants.bias);
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
                                    constants.outputScale, kOutputZero)});
  graph::Model model = builder.model();
  model.main().operands[filter].perChannel.scales = constants.scales;
  return model;
}

TEST(WindowConvolutionTest, GivesTheBytesOfXnnpacksConvolution) {
  ASSERT_TRUE(initializeXnnpack());
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const Convolution g = randomConvolution(&random, 16);
    const Constants constants = constantsFor(g, static_cast<unsigned>(round));
    Bytes input = randomBytes(inputCount(g) + XNN_EXTRA_BYTES, static_cast<unsigned>(round));
    const Bytes expected = onXnnpack(g, constants, input);
    input.resize(inputCount(g));
    const auto both = runBoth(modelOf(g, constants), {input});
    ASSERT_TRUE(both) << both.error().toString();
    ASSERT_EQ(both->made[0], expected) << round;
    // Not all cut off, or the comparison would say little.
    if (expected.size() > 100) {
      EXPECT_GT(std::ranges::count_if(expected,
                                      [](uint8_t value) { return value != 0x7F && value != 0x80; }),
                static_cast<ptrdiff_t>(expected.size() / 4));
    }
  }
}

}  // namespace
}  // namespace hearth::cpu
