// SPDX-License-Identifier: Apache-2.0
// Sums of Avx2Strassen stay exact for the largest numbers, in whatever way their signs are mixed.
#include "drivers/cpu/microkernels/x86/avx2/avx2_strassen.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kQuarters = 4;

class Avx2StrassenTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hasAvx2()) GTEST_SKIP() << "this CPU has no AVX2";
  }

  // Multiplies rows by columns of so many inputs and compares the sums with those of a plain loop.
  void check(const std::vector<int8_t>& rows, const std::vector<int8_t>& columns, size_t inputs) {
    const size_t rowCount = rows.size() / inputs;
    Avx2Qd8Panels product;
    product.inputs = inputs;
    product.columns = columns.size() / inputs;
    product.lowest = -kInfinity;
    product.highest = kInfinity;
    product.outputStride = product.columns;
    const std::vector<uint8_t> packed = pack(product, columns);
    product.packed = packed.data();
    const std::vector<struct xnn_quantization_params> parameters(rowCount, {0, 1.0f});
    std::vector<uint8_t> prepared(strassenRowBytes(product, rowCount));
    std::vector<uint8_t> scratch(strassenScratch(product, rowCount));
    std::vector<float> output(rowCount * product.columns);
    prepareStrassenRows(product, rows.data(), rowCount, 0, strassenSteps(product, rowCount),
                        prepared.data());
    multiplyStrassen(product, prepared.data(), parameters.data(), rowCount, 0,
                     strassenBlocks(product), scratch.data(), output.data());
    for (size_t r = 0; r < rowCount; ++r)
      for (size_t c = 0; c < product.columns; ++c) {
        int32_t sum = 0;
        for (size_t i = 0; i < inputs; ++i) sum += rows[r * inputs + i] * columns[c * inputs + i];
        ASSERT_EQ(output[r * product.columns + c], static_cast<float>(sum)) << r << " " << c;
      }
  }

 private:
  static std::vector<uint8_t> pack(const Avx2Qd8Panels& product,
                                   const std::vector<int8_t>& columns) {
    constexpr size_t kGroup = Avx2Qd8Panels::kGroup;
    constexpr size_t kColumns = Avx2Qd8Panels::kColumns;
    std::vector<uint8_t> packed(product.panels() * product.panelBytes());
    for (size_t c = 0; c < product.columns; ++c) {
      uint8_t* const panel = packed.data() + c / kColumns * product.panelBytes();
      const size_t lane = c % kColumns;
      const float scale = 1;
      std::memcpy(panel + product.panelBytes() - (2 * kColumns - lane) * sizeof(float), &scale,
                  sizeof scale);
      for (size_t i = 0; i < product.inputs; ++i)
        panel[Avx2Qd8Panels::kHeadBytes + (i / kGroup * kColumns + lane) * kGroup + i % kGroup] =
            static_cast<uint8_t>(columns[c * product.inputs + i]);
    }
    return packed;
  }
};

// A matrix whose quarters of quarters have one number each, which the bits of `signs` choose: the
// quarters are those of its rows and of its inputs.
std::vector<int8_t> extremes(size_t rows, size_t inputs, uint32_t signs) {
  std::vector<int8_t> values(rows * inputs);
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < inputs; ++i) {
      const size_t block = r * kQuarters / rows * kQuarters + i * kQuarters / inputs;
      values[r * inputs + i] = (signs >> block & 1) != 0 ? -128 : 127;
    }
  return values;
}

TEST_F(Avx2StrassenTest, LargestNumbersOfAllSigns) {
  constexpr size_t kRows = 16, kInputs = 64, kColumns = 64;
  // All signs of one operand, with the other one's chosen by chance, and the other way round.
  std::mt19937 random(3);
  for (uint32_t signs = 0; signs < 1u << kQuarters * kQuarters; signs += 5) {
    const uint32_t other = static_cast<uint32_t>(random());
    check(extremes(kRows, kInputs, signs), extremes(kColumns, kInputs, other), kInputs);
    check(extremes(kRows, kInputs, other), extremes(kColumns, kInputs, signs), kInputs);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Avx2StrassenTest, LongSums) {
  for (const int8_t number : {-128, 127})
    for (const size_t inputs : {4096, 5000})
      check(std::vector<int8_t>(17 * inputs, number), std::vector<int8_t>(9 * inputs, -128),
            inputs);
}

TEST_F(Avx2StrassenTest, AnyNumbers) {
  std::mt19937 random(5);
  for (const size_t rows : {1, 16, 33, 128})
    for (const size_t inputs : {1, 31, 128, 2100})
      for (const size_t columns : {1, 64, 90}) {
        std::vector<int8_t> left(rows * inputs), right(columns * inputs);
        for (int8_t& number : left) number = static_cast<int8_t>(random());
        for (int8_t& number : right) number = static_cast<int8_t>(random());
        check(left, right, inputs);
      }
}

}  // namespace
}  // namespace hearth::cpu
