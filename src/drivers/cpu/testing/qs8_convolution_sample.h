// SPDX-License-Identifier: Apache-2.0
// For tests: an int8 convolution, and XNNPACK's result of it.
#pragma once

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {

// Values of all sizes, and an output scale at which few results are clamped.
struct Int8ConvolutionSample {
  Int8ConvolutionSample(const Convolution& geometry, bool perChannel, unsigned seed)
      : g(geometry), isPerChannel(perChannel) {
    std::mt19937 random(seed);
    const size_t taps = size_t{g.kernelHeight} * g.kernelWidth;
    const size_t outputs = size_t{g.groups} * g.groupOutputChannels;
    input.resize(g.batch * g.inputHeight * g.inputWidth * g.groups * g.groupInputChannels);
    filter.resize(taps * g.groupInputChannels * outputs);
    bias.resize(outputs);
    for (int8_t& value : input) value = static_cast<int8_t>(random());
    for (int8_t& value : filter) value = static_cast<int8_t>(random());
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 40001) - 20000;
    inputZero = static_cast<int32_t>(random() % 256) - 128;
    outputZero = static_cast<int32_t>(random() % 256) - 128;
    if (random() % 3 == 0) {
      lowest = outputZero;
      highest = std::min(127, outputZero + static_cast<int32_t>(random() % 200) + 1);
      if (highest <= lowest) lowest = highest - 1;
    }
    scales.assign(outputs + XNN_EXTRA_QUANTIZATION_PARAMS, 0.007f);
    if (isPerChannel)
      for (float& scale : scales) scale = 0.005f + 0.000001f * static_cast<float>(random() % 4000);
    const float spread =
        74.0f * 100.0f * std::sqrt(static_cast<float>(taps * g.groupInputChannels)) + 20000.0f;
    outputScale = inputScale * 0.007f * spread / 60.0f;
  }

  size_t outputCount() const {
    return g.batch * g.outputHeight * g.outputWidth * g.groups * g.groupOutputChannels;
  }

  // XNNPACK's result; its packed weights stay in `weights`.
  std::vector<int8_t> onXnnpack(PackedWeights* weights) const {
    xnn_operator_t raw = nullptr;
    const uint32_t flags = g.isDepthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0;
    const size_t inputs = g.groups * g.groupInputChannels;
    const size_t outputs = g.groups * g.groupOutputChannels;
    const xnn_status status = weights->create({}, "CONV_2D", nullptr, [&] {
      if (isPerChannel)
        return xnn_create_convolution2d_nhwc_qs8_qc8w(
            g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
            g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
            g.groupOutputChannels, inputs, outputs, static_cast<int8_t>(inputZero), inputScale,
            scales.data(), filter.data(), bias.data(), static_cast<int8_t>(outputZero), outputScale,
            static_cast<int8_t>(lowest), static_cast<int8_t>(highest), flags, nullptr,
            weights->provider(), &raw);
      return xnn_create_convolution2d_nhwc_qs8(
          g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
          g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
          g.groupOutputChannels, inputs, outputs, static_cast<int8_t>(inputZero), inputScale,
          scales[0], filter.data(), bias.data(), static_cast<int8_t>(outputZero), outputScale,
          static_cast<int8_t>(lowest), static_cast<int8_t>(highest), flags, nullptr,
          weights->provider(), &raw);
    });
    EXPECT_EQ(status, xnn_status_success);
    const XnnOperator op(raw);
    return runXnnpackConvolution(
        op.get(), g,
        isPerChannel ? xnn_reshape_convolution2d_nhwc_qs8_qc8w : xnn_reshape_convolution2d_nhwc_qs8,
        isPerChannel ? xnn_setup_convolution2d_nhwc_qs8_qc8w : xnn_setup_convolution2d_nhwc_qs8,
        input, outputCount());
  }

  // Describes the quantization of input and output to a layer whose kernel onKernel() shall run.
  template <typename Layer>
  void describeTo(Layer* layer) const {
    layer->geometry = g;
    layer->product.outputZero = outputZero;
    layer->product.lowest = lowest;
    layer->product.highest = highest;
    layer->inputZero = inputZero;
    layer->source = 0;
    layer->destination = 1;
  }

  std::vector<int8_t> onKernel(Kernel* kernel, threads::ThreadPool* pool) const {
    return runGuarded(kernel, input, outputCount(), pool);
  }

  const Convolution g;
  const bool isPerChannel;
  std::vector<int8_t> input, filter;
  std::vector<int32_t> bias;
  std::vector<float> scales;  // more than channels: XNNPACK reads past the last one
  int32_t inputZero = 0, outputZero = 0;
  int32_t lowest = -128, highest = 127;
  const float inputScale = 0.023f;
  float outputScale = 0;
};

}  // namespace hearth::cpu
