// SPDX-License-Identifier: Apache-2.0
// Our uint8 convolution gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/qu8_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/testing/compared_models.h"
#include "hearth_xnnpack.h"

namespace hearth::cpu {
namespace {

// Input [batch, height, width, inputs], filter [outputs, kernelHeight, kernelWidth, inputs].
struct Case {
  uint32_t batch, height, width, inputs, outputs, kernelHeight, kernelWidth;
  uint32_t stride, dilation, padding;  // padding on all four sides
  int32_t inputZero, filterZero, outputZero;
  bool hasRelu6 = false;

  uint32_t outputSize(uint32_t input, uint32_t kernel) const {
    return (input + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  }
  uint32_t outputHeight() const { return outputSize(height, kernelHeight); }
  uint32_t outputWidth() const { return outputSize(width, kernelWidth); }
  size_t inputCount() const { return size_t{batch} * height * width * inputs; }
  size_t outputCount() const { return size_t{batch} * outputHeight() * outputWidth() * outputs; }
  size_t depth() const { return size_t{kernelHeight} * kernelWidth * inputs; }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << "x" << c.height << "x" << c.width << "x" << c.inputs << " to " << c.outputs
       << " by " << c.kernelHeight << "x" << c.kernelWidth;
}

constexpr float kInputScale = 0.023f;
constexpr float kFilterScale = 0.0071f;

// Values of all sizes, and an output scale at which few results are clamped.
struct Data {
  explicit Data(const Case& c)
      : input(c.inputCount() + XNN_EXTRA_BYTES), filter(c.depth() * c.outputs), bias(c.outputs) {
    std::mt19937 random(static_cast<unsigned>(c.depth() * 131 + c.outputs));
    for (uint8_t& value : input) value = static_cast<uint8_t>(random());
    for (uint8_t& value : filter) value = static_cast<uint8_t>(random());
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 40001) - 20000;
    // Mean and spread of the sums of products, for uniform bytes.
    const auto depth = static_cast<float>(c.depth());
    const auto fromMiddle = [](int32_t zero) {
      return 127.5f - static_cast<float>(zero);
    };
    const float mean = depth * fromMiddle(c.inputZero) * fromMiddle(c.filterZero);
    const float spread = 74.0f * 74.0f * std::sqrt(depth) + 20000.0f;
    outputScale = kInputScale * kFilterScale * (std::abs(mean) + 2 * spread) / 100.0f;
    lowest = c.hasRelu6 ? c.outputZero : 0;
    if (c.hasRelu6) {
      const float steps = std::nearbyint(6.0f / outputScale) + static_cast<float>(c.outputZero);
      highest = steps < 255.0f ? static_cast<int32_t>(steps) : 255;
    }
  }

  std::vector<uint8_t> input, filter;
  std::vector<int32_t> bias;
  float outputScale = 0;
  int32_t lowest = 0, highest = 255;
};

struct OperatorDeleter {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};

std::vector<uint8_t> runOnXnnpack(const Case& c, const Data& data) {
  std::vector<uint8_t> output(c.outputCount() + XNN_EXTRA_BYTES);
  EXPECT_EQ(xnn_initialize(nullptr), xnn_status_success);
  xnn_operator_t raw = nullptr;
  EXPECT_EQ(
      xnn_create_convolution2d_nhwc_qu8(
          c.padding, c.padding, c.padding, c.padding, c.kernelHeight, c.kernelWidth, c.stride,
          c.stride, c.dilation, c.dilation, 1, c.inputs, c.outputs, c.inputs, c.outputs,
          static_cast<uint8_t>(c.inputZero), kInputScale, static_cast<uint8_t>(c.filterZero),
          kFilterScale, data.filter.data(), data.bias.data(), static_cast<uint8_t>(c.outputZero),
          data.outputScale, static_cast<uint8_t>(data.lowest), static_cast<uint8_t>(data.highest),
          0, nullptr, nullptr, &raw),
      xnn_status_success);
  const std::unique_ptr<xnn_operator, OperatorDeleter> op(raw);
  size_t workspaceSize = 0, alignment = 0, height = 0, width = 0;
  EXPECT_EQ(xnn_reshape_convolution2d_nhwc_qu8(op.get(), c.batch, c.height, c.width, &workspaceSize,
                                               &alignment, &height, &width, nullptr),
            xnn_status_success);
  EXPECT_EQ(height, c.outputHeight());
  EXPECT_EQ(width, c.outputWidth());
  std::vector<uint8_t> workspace(workspaceSize + alignment);
  void* aligned = workspace.data();
  size_t room = workspace.size();
  if (alignment != 0) std::align(alignment, workspaceSize, aligned, room);
  EXPECT_EQ(xnn_setup_convolution2d_nhwc_qu8(op.get(), aligned, data.input.data(), output.data()),
            xnn_status_success);
  EXPECT_EQ(xnn_run_operator(op.get(), nullptr), xnn_status_success);
  output.resize(c.outputCount());
  return output;
}

std::shared_ptr<const graph::Model> modelOf(const Case& c, const Data& data) {
  ModelBuilder builder;
  const uint32_t input =
      builder.input(kUint8, {c.batch, c.height, c.width, c.inputs}, kInputScale, c.inputZero);
  const uint32_t filter =
      builder.constant(kUint8, {c.outputs, c.kernelHeight, c.kernelWidth, c.inputs}, data.filter,
                       kFilterScale, c.filterZero);
  const uint32_t bias = builder.constant(OperandType::kTensorInt32, {c.outputs}, data.bias,
                                         kInputScale * kFilterScale);
  std::vector<uint32_t> inputs = {input, filter, bias};
  const auto padding = static_cast<int32_t>(c.padding);
  const auto stride = static_cast<int32_t>(c.stride);
  const auto dilation = static_cast<int32_t>(c.dilation);
  for (const int32_t value :
       {padding, padding, padding, padding, stride, stride, c.hasRelu6 ? 3 : 0})
    inputs.push_back(builder.scalar(value));
  inputs.push_back(builder.scalar(false));
  inputs.push_back(builder.scalar(dilation));
  inputs.push_back(builder.scalar(dilation));
  const uint32_t output =
      builder.output(kUint8, {c.batch, c.outputHeight(), c.outputWidth(), c.outputs},
                     data.outputScale, c.outputZero);
  builder.operation(OperationType::kConv2d, inputs, {output});
  return std::make_shared<graph::Model>(builder.model());
}

std::vector<uint8_t> runOnDevice(const Case& c, Data& data, unsigned threads) {
  const auto device = createCpuDevice();
  const auto model = modelOf(c, data);
  const auto support = device->explainOperations(*model);
  EXPECT_TRUE(support) << support.error().toString();
  if (!support) return {};
  EXPECT_EQ(support->front().kernel, "own");
  hal::PrepareOptions options;
  options.threads = threads;
  const auto prepared = device->prepareModel(model, options, {});
  EXPECT_TRUE(prepared) << prepared.error().toString();
  if (!prepared) return {};
  std::vector<uint8_t> output(c.outputCount());
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = data.input.data();
  request.inputs[0].length = c.inputCount();
  request.outputs = request.inputs;
  request.outputs[0].pointer = output.data();
  request.outputs[0].length = output.size();
  const auto execution = (*prepared)->createExecution(request);
  EXPECT_TRUE(execution) << execution.error().toString();
  if (!execution) return {};
  const hal::ExecutionResult result = (*execution)->compute({});
  EXPECT_TRUE(result.status) << result.status.error().toString();
  return output;
}

class Uint8ConvolutionTest : public testing::TestWithParam<Case> {};

TEST_P(Uint8ConvolutionTest, EqualsXnnpack) {
  if (!hasAvx512Vnni() && !hasAvx2()) GTEST_SKIP() << "This CPU has no AVX2.";
  const Case c = GetParam();
  Data data(c);
  const std::vector<uint8_t> expected = runOnXnnpack(c, data);
  // If all results were equal, the comparison would show little.
  EXPECT_NE(std::ranges::count(expected, expected[0]), std::ssize(expected));
  for (const unsigned threads : {1u, 3u})
    EXPECT_EQ(runOnDevice(c, data, threads), expected) << threads << " threads";
}

INSTANTIATE_TEST_SUITE_P(Geometries, Uint8ConvolutionTest,
                         testing::Values(Case{1, 7, 5, 16, 24, 1, 1, 1, 1, 0, 128, 151, 120},
                                         Case{2, 9, 11, 3, 17, 3, 3, 2, 1, 1, 0, 128, 0},
                                         Case{1, 12, 9, 5, 33, 3, 3, 1, 2, 2, 177, 0, 255},
                                         Case{3, 6, 6, 64, 100, 5, 3, 1, 1, 2, 255, 255, 128},
                                         Case{1, 1, 1, 1024, 1001, 1, 1, 1, 1, 0, 12, 90, 60},
                                         Case{1, 14, 14, 8, 16, 3, 3, 1, 1, 1, 128, 128, 10, true},
                                         Case{2, 10, 10, 31, 47, 1, 1, 2, 1, 0, 110, 140, 100,
                                              true},
                                         Case{1, 8, 8, 130, 6, 4, 4, 3, 1, 0, 131, 117, 128}));

}  // namespace
}  // namespace hearth::cpu
