// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx512/qu8_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "memory/mapping.h"

namespace hearth::cpu {
namespace {

struct Shape {
  size_t rows, inputs, columns;
};

class Qu8GemmTest : public testing::TestWithParam<Shape> {};

// Compares with the definition: integer sums, rounded once from float to nearest even.
TEST_P(Qu8GemmTest, EqualsTheDefinition) {
  if (!hasAvx512Vnni()) GTEST_SKIP() << "This CPU has no AVX-512 VNNI.";
  const Shape shape = GetParam();
  for (const int32_t weightZero : {0, 128, 151, 255}) {
    const int32_t inputZero = 77;
    std::mt19937 random(static_cast<unsigned>(shape.inputs + 1000 * shape.columns));
    std::vector<uint8_t> a(shape.rows * shape.inputs + 64);
    std::vector<uint8_t> weights(shape.columns * shape.inputs);
    std::vector<int32_t> bias(shape.columns);
    for (uint8_t& value : a) value = static_cast<uint8_t>(random());
    for (uint8_t& value : weights) value = static_cast<uint8_t>(random());
    for (int32_t& value : bias) value = static_cast<int32_t>(random() % 20001) - 10000;
    auto packed = memory::Mapping::anonymous(qu8PackedBytes(shape.inputs, shape.columns));
    ASSERT_TRUE(packed);
    packQu8(weights.data(), bias.data(), shape.inputs, shape.columns, inputZero, weightZero,
            packed->data());
    Qu8Gemm gemm;
    gemm.packed = packed->data();
    gemm.inputs = shape.inputs;
    gemm.columns = shape.columns;
    gemm.weightZero = weightZero;
    gemm.scale = 0.9f / static_cast<float>(shape.inputs) / 40;
    gemm.outputZero = 120;
    gemm.lowest = 3;
    gemm.highest = 250;
    std::vector<uint8_t> output(shape.rows * shape.columns + 1, 0xEE);
    multiplyQu8(gemm, a.data(), shape.inputs, shape.rows, 0, shape.columns, output.data(),
                shape.columns);
    for (size_t r = 0; r < shape.rows; ++r) {
      for (size_t c = 0; c < shape.columns; ++c) {
        int32_t sum = bias[c];
        for (size_t i = 0; i < shape.inputs; ++i)
          sum +=
              (a[r * shape.inputs + i] - inputZero) * (weights[c * shape.inputs + i] - weightZero);
        const float scaled = static_cast<float>(sum) * gemm.scale;
        const int32_t steps =
            std::clamp(static_cast<int32_t>(std::nearbyint(scaled)) + gemm.outputZero, 3, 250);
        ASSERT_EQ(output[r * shape.columns + c], steps) << "row " << r << " column " << c;
      }
    }
    EXPECT_EQ(output.back(), 0xEE) << "A byte behind the output is written.";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Qu8GemmTest,
                         testing::Values(Shape{1, 1, 1}, Shape{7, 27, 24}, Shape{6, 64, 64},
                                         Shape{48, 130, 17}, Shape{65, 3, 100}, Shape{13, 515, 81},
                                         Shape{2, 4096, 16}));

TEST(Qu8Gemm, SumsAtTheLimitDoNotOverflow) {
  if (!hasAvx512Vnni()) GTEST_SKIP() << "This CPU has no AVX-512 VNNI.";
  constexpr size_t kInputs = 32768;
  const std::vector<uint8_t> a(kInputs + 64, 255);
  const std::vector<uint8_t> weights(kInputs, 255);
  auto packed = memory::Mapping::anonymous(qu8PackedBytes(kInputs, 1));
  ASSERT_TRUE(packed);
  packQu8(weights.data(), nullptr, kInputs, 1, 0, 0, packed->data());
  Qu8Gemm gemm;
  gemm.packed = packed->data();
  gemm.inputs = kInputs;
  gemm.columns = 1;
  gemm.scale = 100.0f / (255.0f * 255.0f * kInputs);
  gemm.highest = 255;
  uint8_t output = 0;
  multiplyQu8(gemm, a.data(), kInputs, 1, 0, 1, &output, 1);
  EXPECT_EQ(output, 100);
}

}  // namespace
}  // namespace hearth::cpu
