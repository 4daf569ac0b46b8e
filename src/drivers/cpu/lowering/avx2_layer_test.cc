// SPDX-License-Identifier: Apache-2.0
// Our layer on AVX2 gives the very bytes of XNNPACK's, for convolutions of any geometry.
#include "drivers/cpu/lowering/avx2_layer.h"

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/testing/qs8_convolution_sample.h"
#include "drivers/cpu/testing/random_convolution.h"
#include "drivers/cpu/testing/xnnpack_comparison.h"
#include "memory/mapping.h"

namespace hearth::cpu {
namespace {

class Avx2LayerTest : public XnnpackComparisonTest {
 protected:
  void SetUp() override {
    if (!hasAvx2()) GTEST_SKIP() << "This CPU has no AVX2.";
    XnnpackComparisonTest::SetUp();
  }

  void compare(const Convolution& g, unsigned seed) {
    Int8ConvolutionSample sample(g, seed % 2 == 0, seed);
    // Every second sample has small weights, which need few corrections.
    if (seed % 4 > 1)
      for (int8_t& weight : sample.filter) weight = static_cast<int8_t>(weight / 3);
    PackedWeights forXnnpack(true);
    const std::vector<int8_t> expected = sample.onXnnpack(&forXnnpack);
    Avx2Weights weights;
    weights.values = reinterpret_cast<const uint8_t*>(sample.filter.data());
    weights.inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
    weights.columns = g.groupOutputChannels;
    const std::vector<int32_t> constants =
        avx2Constants(weights, sample.bias.data(), sample.inputZero);
    std::vector<float> factors;
    for (size_t i = 0; i < weights.columns; ++i)
      factors.push_back(sample.inputScale * sample.scales[i] / sample.outputScale);
    weights.constants = constants.data();
    weights.factors = factors.data();
    for (const Avx2Form form : {Avx2Form::kQuads, Avx2Form::kWords, Avx2Form::kDots}) {
      const Avx2Packer packer(weights, form);
      auto packed = memory::Mapping::anonymous(packer.bytes());
      ASSERT_TRUE(packed);
      packer.pack(packed->data());
      auto panels =
          Avx2Panels::read({packed->data(), packer.bytes()}, weights.inputs, weights.columns);
      ASSERT_TRUE(panels);
      Avx2Layer layer;
      sample.describeTo(&layer);
      layer.product.weights = *panels;
      layer.product.outputStride = g.groupOutputChannels;
      const auto kernel = makeAvx2LayerKernel(layer);
      SCOPED_TRACE(static_cast<uint32_t>(form));
      expectOnOneThreadAndOnThree(expected, seed, [&](threads::ThreadPool* pool) {
        return sample.onKernel(kernel.get(), pool);
      });
    }
  }
};

TEST_F(Avx2LayerTest, ConvolutionsAreThoseOfXnnpack) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 100; ++seed) compare(randomConvolution(&random, 40, 3, 2), seed);
}

TEST_F(Avx2LayerTest, RowsAndColumns) {
  forRowsAndColumns({1, 2, 5, 6, 7, 13, 49, 100, 300}, {1, 15, 16, 17, 33, 64, 130},
                    [&](const Convolution& g, unsigned seed) { compare(g, seed); });
}

TEST_F(Avx2LayerTest, WindowsOfManyInputs) {
  compare(windowsOfManyInputs(), 7);
}

}  // namespace
}  // namespace hearth::cpu
