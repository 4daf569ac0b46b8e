// SPDX-License-Identifier: Apache-2.0
// The sums of the product for AVX2 are exact, for the worst weights and inputs, too.
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "memory/mapping.h"

namespace hearth::cpu {
namespace {

// A product, and what computes it.
struct Sample {
  size_t rows = 1, inputs = 1, columns = 1;
  bool isSigned = true;
  int32_t zero = 0;
  std::vector<uint8_t> weights, input;  // [columns][inputs], [rows][inputs]

  int32_t weight(size_t column, size_t i) const {
    const uint8_t value = weights[column * inputs + i];
    return isSigned ? static_cast<int8_t>(value) : value - zero;
  }
  int32_t sum(size_t row, size_t column) const {
    int32_t sum = 0;
    for (size_t i = 0; i < inputs; ++i) sum += input[row * inputs + i] * weight(column, i);
    return sum;
  }
};

constexpr uint8_t kUntouched = 0xEE;

// One way to multiply: a form, and for kDots whether the CPU's instruction does it.
struct Way {
  Avx2Form form;
  bool hasDotInstruction = false;
};

std::vector<Way> waysOf(const Sample& sample) {
  std::vector<Way> ways = {{Avx2Form::kQuads}, {Avx2Form::kDots}};
  if (hasAvxVnni()) ways.push_back({Avx2Form::kDots, true});
  if (sample.isSigned) ways.push_back({Avx2Form::kWords});
  return ways;
}

class Avx2GemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hasAvx2()) GTEST_SKIP() << "This CPU has no AVX2.";
  }

  // The result for constants and factors, one for each column. Behind the rows is no more memory
  // than the product may read.
  static std::vector<uint8_t> multiply(const Sample& sample, const Way& way,
                                       const std::vector<int32_t>& constants,
                                       const std::vector<float>& factors, int32_t zero,
                                       int32_t lowest, int32_t highest) {
    Avx2Weights weights;
    weights.values = sample.weights.data();
    weights.isSigned = sample.isSigned;
    weights.zero = sample.zero;
    weights.inputs = sample.inputs;
    weights.columns = sample.columns;
    weights.constants = constants.data();
    weights.factors = factors.data();
    const Avx2Packer packer(weights, way.form);
    auto packed = memory::Mapping::anonymous(packer.bytes());
    EXPECT_TRUE(packed);
    if (!packed) return {};
    packer.pack(packed->data());
    auto panels = Avx2Panels::read({packed->data(), packer.bytes()}, sample.inputs, sample.columns);
    EXPECT_TRUE(panels);
    if (!panels) return {};
    Avx2Gemm product;
    product.weights = *panels;
    product.output = lowest < 0 ? Avx2Output::kInt8 : Avx2Output::kUint8;
    product.outputZero = zero;
    product.lowest = lowest;
    product.highest = highest;
    product.outputStride = sample.columns;
    product.hasDotInstruction = way.hasDotInstruction;
    std::vector<uint8_t> rows(sample.rows * avx2RowBytes(way.form, sample.inputs) + kAvx2ReadSlack,
                              0xA5);
    prepareAvx2Rows(way.form, sample.input.data(), sample.inputs, sample.rows, sample.inputs, 0,
                    rows.data());
    std::vector<uint8_t> output(sample.rows * sample.columns + 1, kUntouched);
    multiplyAvx2(product, rows.data(), sample.rows, 0, panels->count(), output.data());
    EXPECT_EQ(output.back(), kUntouched) << "A byte behind the output is written.";
    output.pop_back();
    return output;
  }

  // Checks sums that are equal in all rows: with their negatives as constants, results are zero.
  static void expectExact(const Sample& sample) {
    std::vector<int32_t> constants(sample.columns);
    for (size_t c = 0; c < sample.columns; ++c) constants[c] = -sample.sum(0, c);
    const std::vector<float> factors(sample.columns, 1.0f);
    const std::vector<uint8_t> expected(sample.rows * sample.columns, 0);
    for (const Way& way : waysOf(sample))
      ASSERT_EQ(multiply(sample, way, constants, factors, 0, -128, 127), expected)
          << "form " << static_cast<uint32_t>(way.form);
  }
};

TEST_F(Avx2GemmTest, EqualsTheDefinition) {
  std::mt19937 random(3);
  for (const size_t rows : {1, 2, 3, 5, 6, 7, 13})
    for (const size_t inputs : {1, 3, 8, 16, 17, 27, 32, 33, 64, 130, 515})
      for (const size_t columns : {1, 8, 9, 16, 17, 40})
        for (const bool isSigned : {true, false}) {
          Sample sample;
          sample.rows = rows;
          sample.inputs = inputs;
          sample.columns = columns;
          sample.isSigned = isSigned;
          sample.zero = static_cast<int32_t>(random() % 256);
          sample.weights.resize(columns * inputs);
          sample.input.resize(rows * inputs);
          for (uint8_t& value : sample.weights) value = static_cast<uint8_t>(random());
          for (uint8_t& value : sample.input) value = static_cast<uint8_t>(random());
          std::vector<int32_t> constants(columns);
          std::vector<float> factors(columns);
          for (size_t c = 0; c < columns; ++c) {
            // Sums around zero, though the inputs are positive.
            constants[c] = static_cast<int32_t>(random() % 2001) - 1000;
            for (size_t i = 0; i < inputs; ++i) constants[c] -= 127 * sample.weight(c, i);
            factors[c] = 0.01f / std::sqrt(static_cast<float>(inputs + random() % 10));
          }
          const int32_t lowest = isSigned ? -120 : 3;
          const int32_t highest = isSigned ? 110 : 250;
          const int32_t zero = isSigned ? -7 : 131;
          for (const Way& way : waysOf(sample)) {
            const std::vector<uint8_t> output =
                multiply(sample, way, constants, factors, zero, lowest, highest);
            for (size_t r = 0; r < rows; ++r)
              for (size_t c = 0; c < columns; ++c) {
                const float scaled =
                    static_cast<float>(sample.sum(r, c) + constants[c]) * factors[c];
                const int32_t steps = std::clamp(
                    static_cast<int32_t>(std::nearbyint(scaled)) + zero, lowest, highest);
                ASSERT_EQ(output[r * columns + c], static_cast<uint8_t>(steps))
                    << rows << "x" << inputs << "x" << columns << " row " << r << " column " << c
                    << " form " << static_cast<uint32_t>(way.form);
              }
          }
        }
}

// Every pair of weights, with the greatest inputs: at the first two inputs of a group, which one
// instruction adds; and at inputs 0 and 4, whose products are added afterwards. The other two have
// weights that leave no room.
TEST_F(Avx2GemmTest, EveryPairOfWeights) {
  for (const size_t second : {1, 4}) {
    for (const int rest : {0, 127, -128}) {
      Sample sample;
      sample.rows = 2;
      sample.inputs = 8;
      sample.columns = 256 * 256;
      sample.weights.assign(sample.columns * sample.inputs, 0);
      sample.input.assign(sample.rows * sample.inputs, 255);
      for (size_t c = 0; c < sample.columns; ++c) {
        uint8_t* const column = sample.weights.data() + c * sample.inputs;
        column[5 - second] = column[5] = static_cast<uint8_t>(rest);
        column[0] = static_cast<uint8_t>(c);
        column[second] = static_cast<uint8_t>(c / 256);
      }
      expectExact(sample);
    }
  }
}

// The same with uint8 weights and the zero points at which they are largest.
TEST_F(Avx2GemmTest, EveryPairOfUnsignedWeights) {
  for (const int32_t zero : {0, 128, 255}) {
    Sample sample;
    sample.inputs = 8;
    sample.columns = 256 * 256;
    sample.isSigned = false;
    sample.zero = zero;
    sample.weights.assign(sample.columns * sample.inputs, 0);
    sample.input.assign(sample.inputs, 255);
    for (size_t c = 0; c < sample.columns; ++c) {
      uint8_t* const column = sample.weights.data() + c * sample.inputs;
      column[0] = column[6] = static_cast<uint8_t>(c);
      column[1] = column[7] = static_cast<uint8_t>(c / 256);
      column[4] = column[5] = static_cast<uint8_t>(c / 16);
    }
    expectExact(sample);
  }
}

// All weights of a column equal, or alternating between two, with inputs of one kind.
TEST_F(Avx2GemmTest, ExtremeWeights) {
  constexpr int kExtremes[] = {-128, -127, -65, -64, -1, 0, 1, 63, 64, 65, 127};
  for (const size_t inputs : {4, 16, 31, 64, 1000})
    for (const int input : {0, 1, 127, 128, 254, 255}) {
      Sample sample;
      sample.rows = 7;
      sample.inputs = inputs;
      sample.columns = std::size(kExtremes) * std::size(kExtremes);
      sample.input.assign(sample.rows * inputs, static_cast<uint8_t>(input));
      for (const int even : kExtremes)
        for (const int odd : kExtremes)
          for (size_t i = 0; i < inputs; ++i)
            sample.weights.push_back(static_cast<uint8_t>(i % 3 == 0 ? even : odd));
      expectExact(sample);
    }
}

TEST_F(Avx2GemmTest, SumsAtTheLimitDoNotOverflow) {
  Sample sample;
  sample.inputs = 32768;
  sample.columns = 2;
  sample.isSigned = false;
  sample.zero = 0;
  sample.input.assign(sample.inputs, 255);
  sample.weights.assign(sample.columns * sample.inputs, 255);
  expectExact(sample);
}

// Weights that are far from the limits need no corrections, and those that fit no better way cost
// less as words.
TEST_F(Avx2GemmTest, FormsFollowTheWeights) {
  constexpr size_t kInputs = 256;
  constexpr size_t kColumns = 32;
  const std::vector<int32_t> constants(kColumns);
  const std::vector<float> factors(kColumns, 1.0f);
  const auto formOf = [&](int8_t weight, size_t rows) {
    const std::vector<uint8_t> values(kInputs * kColumns, static_cast<uint8_t>(weight));
    Avx2Weights weights;
    weights.values = values.data();
    weights.inputs = kInputs;
    weights.columns = kColumns;
    weights.constants = constants.data();
    weights.factors = factors.data();
    return Avx2Packer(weights, rows).form();
  };
  if (hasAvxVnni()) {
    EXPECT_EQ(formOf(100, 100), Avx2Form::kDots);
  } else {
    EXPECT_EQ(formOf(31, 1), Avx2Form::kQuads);
    EXPECT_EQ(formOf(31, 100), Avx2Form::kQuads);
    EXPECT_EQ(formOf(100, 1), Avx2Form::kWords);
    EXPECT_EQ(formOf(100, 100), Avx2Form::kWords);
  }
}

// Weights that are all the same and need corrections, packed.
std::vector<uint8_t> packedQuads(uint8_t value, size_t inputs, size_t columns) {
  const std::vector<uint8_t> values(columns * inputs, value);
  const std::vector<int32_t> constants(columns);
  const std::vector<float> factors(columns, 1.0f);
  Avx2Weights weights;
  weights.values = values.data();
  weights.inputs = inputs;
  weights.columns = columns;
  weights.constants = constants.data();
  weights.factors = factors.data();
  const Avx2Packer packer(weights, Avx2Form::kQuads);
  EXPECT_GT(packer.corrections(), 0u);
  std::vector<uint8_t> packed(packer.bytes());
  packer.pack(packed.data());
  return packed;
}

TEST_F(Avx2GemmTest, OtherBytesAreRefused) {
  const std::vector<uint8_t> packed = packedQuads(100, 70, 40);
  EXPECT_TRUE(Avx2Panels::read(packed, 70, 40));
  EXPECT_FALSE(Avx2Panels::read(packed, 69, 40));
  EXPECT_FALSE(Avx2Panels::read(packed, 70, 41));
  EXPECT_FALSE(Avx2Panels::read({}, 70, 40));
  EXPECT_FALSE(Avx2Panels::read(std::span(packed).first(packed.size() - 1), 70, 40));
  EXPECT_FALSE(Avx2Panels::read(std::vector<uint8_t>(packed.size()), 70, 40));
  // Whatever the numbers at the beginning are, the panels lie within the bytes.
  for (size_t i = 0; i < 128; ++i)
    for (const uint8_t value : {0, 1, 127, 255}) {
      std::vector<uint8_t> damaged = packed;
      damaged[i] = value;
      const auto panels = Avx2Panels::read(damaged, 70, 40);
      if (!panels) continue;
      for (size_t p = 0; p < panels->count(); ++p) {
        const Avx2Panel& panel = panels->panel(p);
        const size_t corrections = size_t{panel.counts[0]} + panel.counts[1];
        EXPECT_LE(panel.windows + corrections * sizeof(uint32_t), damaged.data() + damaged.size());
      }
    }
}

// A correction of a window that does not exist reads the last one.
TEST_F(Avx2GemmTest, WindowsStayWithinTheRow) {
  std::vector<uint8_t> packed = packedQuads(127, 40, 16);
  auto panels = Avx2Panels::read(packed, 40, 16);
  ASSERT_TRUE(panels);
  const Avx2Panel& panel = panels->panel(0);
  const size_t corrections = size_t{panel.counts[0]} + panel.counts[1];
  ASSERT_GT(corrections, 0u);
  std::memset(packed.data() + (panel.windows - packed.data()), 0xff,
              corrections * sizeof(uint32_t));
  Avx2Gemm product;
  product.weights = *panels;
  product.lowest = -128;
  product.highest = 127;
  product.outputStride = 16;
  const std::vector<uint8_t> rows(avx2RowBytes(Avx2Form::kQuads, 40) + kAvx2ReadSlack, 0);
  std::vector<uint8_t> output(16, kUntouched);
  multiplyAvx2(product, rows.data(), 1, 0, 1, output.data());
  EXPECT_EQ(output, std::vector<uint8_t>(16, 0));
}

TEST_F(Avx2GemmTest, RowsArePrepared) {
  for (const size_t inputs : {1, 5, 8, 16, 33, 100}) {
    std::vector<uint8_t> rows(3 * (inputs + 2));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint8_t>(i * 37);
    const size_t padded = avx2PaddedInputs(inputs);
    std::vector<uint8_t> bytes(3 * avx2RowBytes(Avx2Form::kQuads, inputs), kUntouched);
    prepareAvx2Rows(Avx2Form::kQuads, rows.data(), inputs + 2, 3, inputs, 0x80, bytes.data());
    std::vector<uint8_t> words(3 * avx2RowBytes(Avx2Form::kWords, inputs), kUntouched);
    prepareAvx2Rows(Avx2Form::kWords, rows.data(), inputs + 2, 3, inputs, 0x80, words.data());
    for (size_t r = 0; r < 3; ++r)
      for (size_t i = 0; i < padded; ++i) {
        const uint8_t expected =
            i < inputs ? static_cast<uint8_t>(rows[r * (inputs + 2) + i] ^ 0x80) : uint8_t{0};
        EXPECT_EQ(bytes[r * padded + i], expected);
        constexpr size_t kPlaces[] = {0, 2, 1, 3};
        uint16_t word = 0;
        std::memcpy(&word, &words[2 * (r * padded + i / 4 * 4 + kPlaces[i % 4])], sizeof word);
        EXPECT_EQ(word, expected);
      }
  }
}

TEST_F(Avx2GemmTest, RowsArePreparedInPlace) {
  for (const size_t inputs : {1, 8, 27, 100}) {
    const size_t padded = avx2RowBytes(Avx2Form::kQuads, inputs);
    std::vector<uint8_t> rows(5 * padded + 1);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint8_t>(i * 37);
    const std::vector<uint8_t> before = rows;
    prepareAvx2Rows(Avx2Form::kQuads, rows.data(), padded, 5, inputs, 0x80, rows.data());
    for (size_t r = 0; r < 5; ++r)
      for (size_t i = 0; i < inputs; ++i)
        EXPECT_EQ(rows[r * padded + i], before[r * padded + i] ^ 0x80);
    EXPECT_EQ(rows.back(), before.back()) << "A byte behind the rows is written.";
    // Without a flip nothing is to be done.
    rows = before;
    prepareAvx2Rows(Avx2Form::kDots, rows.data(), padded, 5, inputs, 0, rows.data());
    EXPECT_EQ(rows, before);
  }
}

}  // namespace
}  // namespace hearth::cpu
