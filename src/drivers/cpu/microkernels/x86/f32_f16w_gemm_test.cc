// SPDX-License-Identifier: Apache-2.0
// Products with float16 weights give the very bytes of sums with one fused step after another.
#include "drivers/cpu/microkernels/x86/f32_f16w_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/testing/reference_comparison.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  size_t rows, channels, columns;
  float lowest = -kInfinity, highest = kInfinity;
  bool hasBias = true;
};

class HalfProductTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!hasHalfProduct()) GTEST_SKIP() << "This processor cannot widen float16.";
  }
};

TEST_P(HalfProductTest, EqualsFusedSums) {
  const Case& c = GetParam();
  constexpr size_t kGuard = 32;
  constexpr float kUntouched = -12345;
  const std::vector<float> rows = randomFloats(c.rows * c.channels, 1);
  const std::vector<float> bias = randomFloats(c.columns, 2);
  std::vector<uint16_t> weights;
  for (const float value : randomFloats(c.columns * c.channels, 3))
    weights.push_back(std::bit_cast<uint16_t>(static_cast<_Float16>(value)));

  F16wGemm product;
  product.channels = c.channels;
  product.columns = c.columns;
  product.lowest = c.lowest;
  product.highest = c.highest;
  product.outputStride = c.columns + 3;
  const size_t bytes = product.panels() * product.panelBytes();
  std::vector<float> packed(bytes / sizeof(float) + 8);  // aligned, and no byte more is read
  auto* const at = reinterpret_cast<uint8_t*>(packed.data());
  packHalves(product, weights.data(), c.hasBias ? bias.data() : nullptr, at);
  product.packed = at;

  // In one pass, and in several passes over channels and panels.
  for (const size_t step : {c.channels, size_t{1}, size_t{37}}) {
    std::vector<float> output(c.rows * product.outputStride + 2 * kGuard, kUntouched);
    for (size_t first = 0; first < c.rows; first += halfTileRows()) {
      const size_t count = std::min(halfTileRows(), c.rows - first);
      std::vector<float> tile(count * c.channels);
      makeHalfTile(rows.data() + first * c.channels, count, c.channels, tile.data());
      float* const to = output.data() + kGuard + first * product.outputStride;
      const size_t middle = product.panels() / 2;
      for (size_t channel = 0; channel < c.channels; channel += step) {
        const size_t end = std::min(channel + step, c.channels);
        multiplyHalves(product, tile.data(), count, channel, end, 0, middle, to);
        multiplyHalves(product, tile.data(), count, channel, end, middle, product.panels(), to);
      }
    }
    for (size_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(output[i], kUntouched);
      ASSERT_EQ(output[output.size() - 1 - i], kUntouched);
    }
    for (size_t r = 0; r < c.rows; ++r) {
      const float* const actual = output.data() + kGuard + r * product.outputStride;
      for (size_t column = 0; column < c.columns; ++column) {
        float sum = c.hasBias ? bias[column] : 0.0f;
        for (size_t k = 0; k < c.channels; ++k)
          sum = std::fma(
              rows[r * c.channels + k],
              static_cast<float>(std::bit_cast<_Float16>(weights[column * c.channels + k])), sum);
        const float expected = std::min(c.highest, std::max(c.lowest, sum));
        ASSERT_EQ(std::bit_cast<uint32_t>(actual[column]), std::bit_cast<uint32_t>(expected))
            << r << " " << column << " in steps of " << step;
      }
      for (size_t i = c.columns; i < product.outputStride && r + 1 < c.rows; ++i)
        ASSERT_EQ(actual[i], kUntouched) << "behind row " << r;
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all = {{1, 2100, 300},
                           {2, 64, 64, 0.0f, 0.5f},
                           {40, 130, 150, -1.0f, 1.0f, false},
                           {1, 1, 1},
                           {1, 5, 17, 0.0f, kInfinity, false}};
  // Each number of rows has a kernel of its own.
  for (size_t rows = 1; rows <= 13; ++rows) {
    all.push_back({rows, 40, 5 * kHalfColumns});
    all.push_back({rows, 33, 8 * kHalfColumns + 5});
    all.push_back({rows, 7, 9});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, HalfProductTest, testing::ValuesIn(cases()));

// Special numbers follow the rules of float16 and of fused steps.
TEST(HalfProductNumbersTest, SubnormalsInfinitiesAndNaN) {
  if (!hasHalfProduct()) GTEST_SKIP() << "This processor cannot widen float16.";
  const std::vector<uint16_t> weights = {0x0001, 0x8001, 0x7c00, 0xfc00, 0x7e00, 0x8000, 0x03ff};
  const float expected[] = {
      std::ldexp(1.0f, -24),       -std::ldexp(1.0f, -24), kInfinity, -kInfinity, NAN, 0.0f,
      1023 * std::ldexp(1.0f, -24)};
  F16wGemm product;
  product.channels = 1;
  product.columns = product.outputStride = weights.size();
  product.lowest = -kInfinity;
  product.highest = kInfinity;
  std::vector<float> packed(product.panels() * product.panelBytes() / sizeof(float));
  packHalves(product, weights.data(), nullptr, reinterpret_cast<uint8_t*>(packed.data()));
  product.packed = reinterpret_cast<const uint8_t*>(packed.data());
  const float one = 1;
  std::vector<float> output(weights.size());
  multiplyHalves(product, &one, 1, 0, 1, 0, 1, output.data());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(output[i])) << i;
    else
      EXPECT_EQ(output[i], expected[i]) << i;
  }
}

}  // namespace
}  // namespace hearth::cpu
