// SPDX-License-Identifier: Apache-2.0
// Our int8 transposed convolution gives the very bytes of XNNPACK's.
#include "drivers/cpu/lowering/transpose_layer.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/testing/random_transposed.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"
#include "memory/mapping.h"

namespace hearth::cpu {
namespace {

// Values of all sizes, and an output scale at which few results are clamped.
struct Sample {
  Sample(const ops::TransposeConv2dParameters& geometry, unsigned seed) : g(geometry) {
    std::mt19937 random(seed);
    const ops::Window2d& w = g.window;
    const auto taps = static_cast<size_t>(w.filterHeight) * static_cast<size_t>(w.filterWidth);
    input.resize(size_t{g.input.batches} * g.input.height * g.input.width * g.input.channels);
    filter.resize(taps * g.input.channels * g.output.channels);
    bias.resize(g.output.channels);
    for (int8_t& value : input) value = static_cast<int8_t>(random());
    for (int8_t& value : filter) value = static_cast<int8_t>(random());
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 40001) - 20000;
    inputZero = static_cast<int32_t>(random() % 256) - 128;
    outputZero = static_cast<int32_t>(random() % 256) - 128;
    if (random() % 3 == 0) lowest = std::min(outputZero, 126);
    for (uint32_t i = 0; i < g.output.channels + XNN_EXTRA_QUANTIZATION_PARAMS; ++i)
      scales.push_back(0.005f + 0.000001f * static_cast<float>(random() % 4000));
    const float spread =
        74.0f * 100.0f * std::sqrt(static_cast<float>(taps * g.input.channels)) + 20000.0f;
    outputScale = kInputScale * 0.007f * spread / 60.0f;
  }

  size_t outputCount() const {
    return size_t{g.output.batches} * g.output.height * g.output.width * g.output.channels;
  }

  std::vector<int8_t> onXnnpack() const {
    const ops::Window2d& w = g.window;
    const auto number = [](int32_t value) {
      return static_cast<uint32_t>(value);
    };
    xnn_operator_t raw = nullptr;
    EXPECT_EQ(
        xnn_create_deconvolution2d_nhwc_qs8_qc8w(
            number(w.padding.top), number(w.padding.right), number(w.padding.bottom),
            number(w.padding.left), number(w.filterHeight), number(w.filterWidth),
            number(w.strideHeight), number(w.strideWidth), 1, 1, 1, g.input.channels,
            g.output.channels, g.input.channels, g.output.channels, static_cast<int8_t>(inputZero),
            kInputScale, scales.data(), filter.data(), bias.data(), static_cast<int8_t>(outputZero),
            outputScale, static_cast<int8_t>(lowest), 127, 0, nullptr, nullptr, &raw),
        xnn_status_success);
    const XnnOperator op(raw);
    size_t height = 0, width = 0;
    EXPECT_EQ(xnn_reshape_deconvolution2d_nhwc_qs8_qc8w(
                  op.get(), g.input.batches, g.input.height, g.input.width, g.adjustmentHeight,
                  g.adjustmentWidth, &height, &width, nullptr),
              xnn_status_success);
    EXPECT_EQ(height, g.output.height);
    EXPECT_EQ(width, g.output.width);
    std::vector<int8_t> readable = input;
    readable.resize(input.size() + XNN_EXTRA_BYTES);
    std::vector<int8_t> output(outputCount() + XNN_EXTRA_BYTES);
    EXPECT_EQ(xnn_setup_deconvolution2d_nhwc_qs8_qc8w(op.get(), readable.data(), output.data()),
              xnn_status_success);
    EXPECT_EQ(xnn_run_operator(op.get(), nullptr), xnn_status_success);
    output.resize(outputCount());
    return output;
  }

  // With the product for AVX2 if there is a form, else that for AVX-512 VNNI.
  std::vector<int8_t> onOurs(std::optional<Avx2Form> form, threads::ThreadPool* pool) const {
    TransposeLayer layer;
    layer.geometry = g;
    layer.inputZero = inputZero;
    layer.product.columns = g.output.channels;
    layer.product.outputZero = outputZero;
    layer.product.lowest = lowest;
    layer.product.highest = 127;
    layer.source = 0;
    layer.destination = 1;
    std::vector<float> factors;
    for (uint32_t i = 0; i < g.output.channels; ++i)
      factors.push_back(kInputScale * scales[i] / outputScale);
    if (form) {
      const Avx2TransposePacker packer(layer, filter.data(), bias.data(), factors.data(), *form);
      auto packed = memory::Mapping::anonymous(packer.bytes());
      EXPECT_TRUE(packed);
      packer.pack(packed->data());
      const std::unique_ptr<Kernel> kernel =
          makeAvx2TransposeKernel(layer, {packed->data(), packer.bytes()});
      return runGuarded(kernel.get(), input, outputCount(), pool);
    }
    std::vector<uint8_t> packed(layer.packedBytes());
    packTranspose(layer, filter.data(), bias.data(), factors.data(), packed.data());
    layer.product.packed = packed.data();
    const std::unique_ptr<Kernel> kernel = makeTransposeLayerKernel(layer);
    return runGuarded(kernel.get(), input, outputCount(), pool);
  }

  static constexpr float kInputScale = 0.023f;
  const ops::TransposeConv2dParameters g;
  std::vector<int8_t> input, filter;
  std::vector<int32_t> bias;
  std::vector<float> scales;  // more than channels: XNNPACK reads past the last one
  int32_t inputZero = 0, outputZero = 0, lowest = -128;
  float outputScale = 0;
};

class TransposeLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!hasAvx2()) GTEST_SKIP() << "This CPU has no AVX2.";
    const auto tested = selfTest();
    ASSERT_TRUE(tested) << tested.error().toString();
    if (tested->traits.guardInt8OneRowTail || tested->traits.avoidInt8OneRowTail)
      GTEST_SKIP() << "XNNPACK's results are wrong on this CPU.";
  }

  void compare(const ops::TransposeConv2dParameters& g, unsigned seed) {
    const Sample sample(g, seed);
    const std::vector<int8_t> expected = sample.onXnnpack();
    const auto expectFrom = [&](std::optional<Avx2Form> form) {
      SCOPED_TRACE(form ? static_cast<int>(*form) : 0);
      expectOnOneThreadAndOnThree(
          expected, seed, [&](threads::ThreadPool* pool) { return sample.onOurs(form, pool); });
    };
    if (hasAvx512Vnni()) expectFrom(std::nullopt);
    for (const Avx2Form form : {Avx2Form::kQuads, Avx2Form::kWords, Avx2Form::kDots})
      expectFrom(form);
  }
};

TEST_F(TransposeLayerTest, LayersAreThoseOfXnnpack) {
  EXPECT_GT(forRandomTransposed(300, [&](const ops::TransposeConv2dParameters& g,
                                         unsigned seed) { compare(g, seed); }),
            200u);
}

// Several tasks, and more channels than two panels.
TEST_F(TransposeLayerTest, LargeLayers) {
  for (const uint32_t width : {40u, 200u}) {
    ops::TransposeConv2dParameters g;
    g.window.filterHeight = g.window.filterWidth = 3;
    g.window.strideHeight = g.window.strideWidth = 2;
    g.window.padding = {0, 1, 0, 1};
    g.input = {2, 11, width, 130};
    g.output.channels = 100;
    findOutput(&g, 0, 0);
    compare(g, width);
  }
}

// Bytes that were not packed for the layer, or are fewer than it needs, make no kernel.
TEST(Avx2TransposeTest, OtherBytesAreRefused) {
  if (!hasAvx2()) GTEST_SKIP() << "This CPU has no AVX2.";
  ops::TransposeConv2dParameters g;
  g.window.filterHeight = g.window.filterWidth = 3;
  g.window.strideHeight = g.window.strideWidth = 2;
  g.input = {1, 4, 4, 20};
  g.output.channels = 18;
  findOutput(&g, 0, 0);
  const Sample sample(g, 3);
  TransposeLayer layer;
  layer.geometry = g;
  const std::vector<float> factors(g.output.channels, 1.0f);
  const Avx2TransposePacker packer(layer, sample.filter.data(), nullptr, factors.data(),
                                   Avx2Form::kQuads);
  auto packed = memory::Mapping::anonymous(packer.bytes());
  ASSERT_TRUE(packed);
  packer.pack(packed->data());
  const std::span<const uint8_t> bytes(packed->data(), packer.bytes());
  EXPECT_NE(makeAvx2TransposeKernel(layer, bytes), nullptr);
  for (size_t size = 0; size < bytes.size(); size += 60)
    EXPECT_EQ(makeAvx2TransposeKernel(layer, bytes.first(size)), nullptr) << size;
  ++layer.geometry.input.channels;
  EXPECT_EQ(makeAvx2TransposeKernel(layer, bytes), nullptr);
}

TEST_F(TransposeLayerTest, LongStridesAreLeftToXnnpack) {
  for (const int32_t stride : {8, 9}) {
    ModelBuilder builder;
    const auto size = static_cast<uint32_t>(3 * stride);
    const uint32_t input = builder.input(kInt8, {1, 3, 3, 5}, 0.03f, 4);
    const uint32_t filter = builder.constant(kInt8, {7, 2, 2, 5}, randomBytes(140, 1), 0.02f, 0);
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {7},
                                           std::vector<int32_t>(7, 300), 0.03f * 0.02f);
    const auto side = static_cast<int32_t>(size);
    const uint32_t shape =
        builder.constant(OperandType::kTensorInt32, {4}, std::vector<int32_t>{1, side, side, 7});
    builder.operation(OperationType::kTransposeConv2d,
                      {input, filter, bias, shape, builder.scalar(1), builder.scalar(stride),
                       builder.scalar(stride), builder.scalar(0), builder.scalar(false)},
                      {builder.output(kInt8, {1, size, size, 7}, 0.5f, -9)});
    EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(45, 2)},
                                      stride == 8 ? "own" : "xnnpack", 0.0f),
              "");
  }
}

}  // namespace
}  // namespace hearth::cpu
