// SPDX-License-Identifier: Apache-2.0
// Our float32 transposed convolutions give the very bytes of XNNPACK's, but for few output
// channels, of which XNNPACK adds in another order.
#include "drivers/cpu/lowering/f32_transpose_layer.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/f32_narrow_transpose.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/testing/random_transposed.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"
#include "memory/mapping.h"

namespace hearth::cpu {
namespace {

struct Sample {
  Sample(const ops::TransposeConv2dParameters& geometry, unsigned seed) {
    layer.geometry = geometry;
    const ops::Window2d& w = geometry.window;
    const auto taps = static_cast<size_t>(w.filterHeight) * static_cast<size_t>(w.filterWidth);
    input = randomFloats(
        size_t{g.input.batches} * g.input.height * g.input.width * g.input.channels, seed);
    filter = randomFloats(taps * g.input.channels * g.output.channels, seed + 1);
    if (seed % 4 != 0) bias = randomFloats(g.output.channels, seed + 2);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    layer.lowest = seed % 3 == 0 ? -0.5f : -kInfinity;
    layer.highest = seed % 3 == 0 ? 1.0f : kInfinity;
    layer.source = 0;
    layer.destination = 1;
  }

  const float* biasData() const { return bias.empty() ? nullptr : bias.data(); }

  size_t outputCount() const {
    return size_t{g.output.batches} * g.output.height * g.output.width * g.output.channels;
  }

  std::vector<float> onXnnpack() const {
    const ops::Window2d& w = g.window;
    const auto number = [](int32_t value) {
      return static_cast<uint32_t>(value);
    };
    xnn_operator_t raw = nullptr;
    EXPECT_EQ(xnn_create_deconvolution2d_nhwc_f32(
                  number(w.padding.top), number(w.padding.right), number(w.padding.bottom),
                  number(w.padding.left), number(w.filterHeight), number(w.filterWidth),
                  number(w.strideHeight), number(w.strideWidth), 1, 1, 1, g.input.channels,
                  g.output.channels, g.input.channels, g.output.channels, filter.data(), biasData(),
                  layer.lowest, layer.highest, 0, nullptr, nullptr, &raw),
              xnn_status_success);
    const XnnOperator op(raw);
    size_t height = 0, width = 0;
    EXPECT_EQ(xnn_reshape_deconvolution2d_nhwc_f32(op.get(), g.input.batches, g.input.height,
                                                   g.input.width, g.adjustmentHeight,
                                                   g.adjustmentWidth, &height, &width, nullptr),
              xnn_status_success);
    EXPECT_EQ(height, g.output.height);
    EXPECT_EQ(width, g.output.width);
    std::vector<float> readable = input;
    readable.resize(input.size() + XNN_EXTRA_BYTES / sizeof(float));
    std::vector<float> output(outputCount() + XNN_EXTRA_BYTES / sizeof(float));
    EXPECT_EQ(xnn_setup_deconvolution2d_nhwc_f32(op.get(), readable.data(), output.data()),
              xnn_status_success);
    EXPECT_EQ(xnn_run_operator(op.get(), nullptr), xnn_status_success);
    output.resize(outputCount());
    return output;
  }

  // The sums in their order, one by one.
  std::vector<float> inOrder() const {
    const ops::Window2d& w = g.window;
    std::vector<float> output;
    output.reserve(outputCount());
    // The position of the input under a tap, or none.
    const auto under = [](uint32_t place, int32_t padding, int32_t tap, int32_t stride,
                          uint32_t size) -> std::optional<size_t> {
      const int64_t from = int64_t{place} + padding - tap;
      if (from < 0 || from % stride != 0 || from / stride >= int64_t{size}) return std::nullopt;
      return static_cast<size_t>(from / stride);
    };
    for (uint32_t image = 0; image < g.output.batches; ++image)
      for (uint32_t y = 0; y < g.output.height; ++y)
        for (uint32_t x = 0; x < g.output.width; ++x)
          for (uint32_t o = 0; o < g.output.channels; ++o) {
            float sum = bias.empty() ? 0.0f : bias[o];
            const float* weight = filter.data() + filter.size() / g.output.channels * size_t{o};
            for (int32_t tapY = 0; tapY < w.filterHeight; ++tapY)
              for (int32_t tapX = 0; tapX < w.filterWidth; ++tapX, weight += g.input.channels) {
                const auto row = under(y, w.padding.top, tapY, w.strideHeight, g.input.height);
                const auto column = under(x, w.padding.left, tapX, w.strideWidth, g.input.width);
                if (!row || !column) continue;
                const float* const pixel =
                    input.data() +
                    ((image * g.input.height + *row) * g.input.width + *column) * g.input.channels;
                for (uint32_t c = 0; c < g.input.channels; ++c)
                  sum = std::fma(pixel[c], weight[c], sum);
              }
            output.push_back(std::min(std::max(sum, layer.lowest), layer.highest));
          }
    return output;
  }

  std::vector<float> onOurs(threads::ThreadPool* pool) const {
    auto packed = memory::Mapping::anonymous(layer.packedBytes());
    EXPECT_TRUE(packed);
    F32TransposeLayer whole = layer;
    auto* const panels = reinterpret_cast<float*>(packed->data());
    packF32Transpose(layer, filter.data(), biasData(), panels);
    whole.packed = panels;
    return runGuarded(makeF32TransposeKernel(whole).get(), input, outputCount(), pool);
  }

  std::vector<float> onNarrow(threads::ThreadPool* pool) const {
    F32NarrowTranspose narrow;
    narrow.geometry = g;
    narrow.weights = filter.data();
    narrow.bias = biasData();
    narrow.lowest = layer.lowest;
    narrow.highest = layer.highest;
    narrow.source = layer.source;
    narrow.destination = layer.destination;
    return runGuarded(makeF32NarrowTransposeKernel(narrow).get(), input, outputCount(), pool);
  }

  F32TransposeLayer layer;
  const ops::TransposeConv2dParameters& g = layer.geometry;
  std::vector<float> input, filter, bias;
};

class FloatTransposeLayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    XnnpackComparisonTest::SetUp();
    if (!cpuHasF32Gemm()) GTEST_SKIP() << "This CPU lacks AVX2 or FMA.";
    for (const size_t threads : {2, 3, 5})
      pools_.push_back(threads::ThreadPool::create(threads).value());
  }

  void compare(const ops::TransposeConv2dParameters& g, unsigned seed) {
    const Sample sample(g, seed);
    const bool isWide = g.output.channels >= f32Tile().columns;
    const std::vector<float> expected = isWide ? sample.onXnnpack() : sample.inOrder();
    ASSERT_EQ(sample.onOurs(nullptr), expected) << seed;
    for (const auto& pool : pools_)
      ASSERT_EQ(sample.onOurs(pool.get()), expected)
          << seed << ", " << pool->threadCount() << " threads";
  }

  void compareNarrow(const ops::TransposeConv2dParameters& g, unsigned seed) {
    ASSERT_TRUE(hasF32NarrowTranspose(g)) << seed;
    const Sample sample(g, seed);
    const std::vector<float> expected = sample.inOrder();
    ASSERT_EQ(sample.onNarrow(nullptr), expected) << seed;
    for (const auto& pool : pools_)
      ASSERT_EQ(sample.onNarrow(pool.get()), expected)
          << seed << ", " << pool->threadCount() << " threads";
  }

  std::vector<std::unique_ptr<threads::ThreadPool>> pools_;
};

TEST_F(FloatTransposeLayerTest, LayersAreThoseOfXnnpack) {
  EXPECT_GT(forRandomTransposed(300, [&](const ops::TransposeConv2dParameters& g,
                                         unsigned seed) { compare(g, seed); }),
            200u);
}

// Several tasks of rows, or of columns where the weights are the larger part.
TEST_F(FloatTransposeLayerTest, LargeLayers) {
  for (const uint32_t width : {3u, 40u, 200u}) {
    ops::TransposeConv2dParameters g;
    g.window.filterHeight = g.window.filterWidth = 3;
    g.window.strideHeight = g.window.strideWidth = 2;
    g.window.padding = {0, 1, 0, 1};
    g.input = {2, 11, width, 130};
    g.output.channels = 200;
    findOutput(&g, 0, 0);
    compare(g, width);
  }
}

TEST_F(FloatTransposeLayerTest, NarrowLayers) {
  unsigned compared = 0;
  forRandomTransposed(300, [&](ops::TransposeConv2dParameters g, unsigned seed) {
    g.input.width += 16 + seed % 60;
    g.output.channels = 1 + seed % 4;
    findOutput(&g, g.adjustmentHeight, g.adjustmentWidth);
    if (!hasF32NarrowTranspose(g)) return;
    compareNarrow(g, seed);
    ++compared;
  });
  EXPECT_GT(compared, 100u);
}

// Lines of several tasks, and images of several.
TEST_F(FloatTransposeLayerTest, LargeNarrowLayers) {
  for (const uint32_t channels : {1u, 3u}) {
    ops::TransposeConv2dParameters g;
    g.window.filterHeight = g.window.filterWidth = 4;
    g.window.strideHeight = g.window.strideWidth = 2;
    g.window.padding = {1, 1, 1, 1};
    g.input = {2, 40, 1100, 21};
    g.output.channels = channels;
    findOutput(&g, 0, 0);
    compareNarrow(g, channels);
  }
}

TEST_F(FloatTransposeLayerTest, WideOrShortLayersAreNotNarrow) {
  ops::TransposeConv2dParameters g;
  g.window.filterHeight = g.window.filterWidth = 2;
  g.window.strideHeight = g.window.strideWidth = 2;
  g.input = {1, 8, 64, 16};
  g.output.channels = 1;
  findOutput(&g, 0, 0);
  EXPECT_TRUE(hasF32NarrowTranspose(g));
  g.output.channels = 16;
  EXPECT_FALSE(hasF32NarrowTranspose(g));
  g.output.channels = 1;
  g.input.width = 4;
  findOutput(&g, 0, 0);
  EXPECT_FALSE(hasF32NarrowTranspose(g));
}

}  // namespace
}  // namespace hearth::cpu
