// SPDX-License-Identifier: Apache-2.0
// Reductions and searches with vectorised loops, compared with a loop over single elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/quantization.h"
#include "ops/testing/operation_builder.h"
#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

// A tensor of up to three dimensions and which of them are reduced.
struct ReductionCase {
  Dimensions dimensions;
  std::vector<int32_t> axes;
};

// Long and short, wide and narrow tensors, and sizes that do not fill a vector.
std::vector<ReductionCase> cases() {
  std::vector<ReductionCase> all;
  for (const uint32_t size :
       {1u, 2u, 9u, 16u, 17u, 31u, 32u, 33u, 64u, 127u, 129u, 255u, 256u, 257u, 1000u})
    for (const uint32_t other : {1u, 3u, 40u}) {
      all.push_back({{other, size}, {1}});
      all.push_back({{size, other}, {0}});
      all.push_back({{other, size}, {0, 1}});
    }
  all.push_back({{40000, 1}, {0}});
  all.push_back({{5, 70000}, {1}});
  all.push_back({{3000, 3}, {0}});
  all.push_back({{2, 700, 5}, {1}});
  all.push_back({{9, 3, 130}, {1}});
  all.push_back({{7, 3, 130}, {0, 2}});
  all.push_back({{3, 600, 33}, {0, 1}});
  // Enough bytes that parts of the first dimension are folded by themselves and merged.
  all.push_back({{66000, 33}, {0}});
  all.push_back({{300, 3, 2500}, {0, 2}});
  all.push_back({{2200000}, {0}});
  return all;
}

// Calls visit(input element, output element) for all elements of the input.
template <typename Visit>
void forEachElement(const ReductionCase& c, const Visit& visit) {
  size_t count = 1;
  for (const uint32_t dimension : c.dimensions) count *= dimension;
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    size_t at = 0;
    size_t stride = 1;
    for (size_t d = c.dimensions.size(); d-- > 0;) {
      const size_t index = rest % c.dimensions[d];
      rest /= c.dimensions[d];
      if (std::ranges::find(c.axes, static_cast<int32_t>(d)) != c.axes.end()) continue;
      at += index * stride;
      stride *= c.dimensions[d];
    }
    visit(i, at);
  }
}

size_t inputCountOf(const ReductionCase& c) {
  size_t count = 0;
  forEachElement(c, [&](size_t i, size_t) { count = i + 1; });
  return count;
}
size_t outputCountOf(const ReductionCase& c) {
  size_t count = 0;
  forEachElement(c, [&](size_t, size_t at) { count = std::max(count, at + 1); });
  return count;
}

template <typename T>
std::vector<T> reduced(OperationType type, const ReductionCase& c, graph::Operand input,
                       const std::vector<T>& values, const graph::Operand& output) {
  OperationBuilder builder(type);
  input.dimensions = c.dimensions;
  builder.input(input, values);
  builder.input({static_cast<uint32_t>(c.axes.size())}, c.axes);
  if (type == OperationType::kMean)
    builder.scalar(0);
  else
    builder.scalar(false);
  builder.output(output);
  const Status status = builder.run();
  EXPECT_TRUE(status) << status.error().toString();
  return builder.result<T>();
}

template <typename T>
void checkExtremes(const graph::Operand& operand, int lowest, int highest) {
  for (const ReductionCase& c : cases()) {
    const std::vector<T> values = randomValues<T>(inputCountOf(c), lowest, highest);
    std::vector<T> greatest(outputCountOf(c), std::numeric_limits<T>::lowest());
    std::vector<T> least(greatest.size(), std::numeric_limits<T>::max());
    forEachElement(c, [&](size_t i, size_t at) {
      greatest[at] = std::max(greatest[at], values[i]);
      least[at] = std::min(least[at], values[i]);
    });
    EXPECT_EQ(reduced(OperationType::kReduceMax, c, operand, values, operand), greatest);
    EXPECT_EQ(reduced(OperationType::kReduceMin, c, operand, values, operand), least);
  }
}

TEST(LongReductionsTest, Extremes) {
  checkExtremes<int8_t>(OperationBuilder::tensor(kInt8, {}, 0.5f, 3), -128, 127);
  checkExtremes<uint8_t>(OperationBuilder::tensor(kUint8, {}, 0.5f, 3), 0, 255);
  checkExtremes<int16_t>(OperationBuilder::tensor(kInt16, {}, 0.5f), -32768, 32767);
  checkExtremes<int32_t>(OperationBuilder::tensor(OperandType::kTensorInt32, {}), -1000, 1000);
  checkExtremes<float>(OperationBuilder::tensor(OperandType::kTensorFloat32, {}), -1000, 1000);
}

// Products of powers of two are exact.
TEST(LongReductionsTest, Products) {
  const auto operand = OperationBuilder::tensor(kFloat, {});
  for (const ReductionCase& c : cases()) {
    std::vector<float> values(inputCountOf(c));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 97 == 0 ? 2.0f : i % 97 == 50 ? -0.5f : i % 3 == 0 ? -1.0f : 1.0f;
    std::vector<float> products(outputCountOf(c), 1.0f);
    forEachElement(c, [&](size_t i, size_t at) { products[at] *= values[i]; });
    EXPECT_EQ(reduced(OperationType::kReduceProd, c, operand, values, operand), products);
  }
}

// Sums of whole numbers are exact.
template <typename T>
void checkSums(const graph::Operand& operand, int lowest, int highest) {
  for (const ReductionCase& c : cases()) {
    const std::vector<T> values = randomValues<T>(inputCountOf(c), lowest, highest);
    std::vector<int64_t> sums(outputCountOf(c));
    forEachElement(c, [&](size_t i, size_t at) {
      sums[at] += static_cast<int64_t>(values[i]) - operand.zeroPoint;
    });
    const auto count = static_cast<double>(values.size() / sums.size());
    graph::Operand output = operand;
    if (operand.scale > 0.0f) output.scale = 64.0f;
    const double scale = operand.scale > 0.0f ? operand.scale : 1.0;
    const auto expect = [&](OperationType type, double divisor) {
      std::vector<T> expected;
      for (const int64_t sum : sums) {
        const double real = scale / divisor * static_cast<double>(sum);
        expected.push_back(operand.scale > 0.0f ? static_cast<T>(quantize(real, output))
                                                : static_cast<T>(real));
      }
      EXPECT_EQ(reduced(type, c, operand, values, output), expected);
    };
    expect(OperationType::kReduceSum, 1.0);
    expect(OperationType::kMean, count);
  }
}

TEST(LongReductionsTest, Sums) {
  checkSums<int8_t>(OperationBuilder::tensor(kInt8, {}, 0.5f, 3), -128, 127);
  checkSums<int8_t>(OperationBuilder::tensor(kInt8, {}, 0.5f, 127), -128, -128);
  checkSums<uint8_t>(OperationBuilder::tensor(kUint8, {}, 0.5f, 0), 255, 255);
  checkSums<uint8_t>(OperationBuilder::tensor(kUint8, {}, 0.5f, 100), 0, 255);
  checkSums<int16_t>(OperationBuilder::tensor(kInt16, {}, 0.5f), -32768, 32767);
  checkSums<float>(OperationBuilder::tensor(OperandType::kTensorFloat32, {}), -64, 64);
}

// A few bytes or a single one decide, anywhere in a row; every byte but 0 is true.
TEST(LongReductionsTest, Truth) {
  const auto operand = OperationBuilder::tensor(kBool8, {});
  for (const ReductionCase& c : cases()) {
    for (const bool isMostlyTrue : {false, true}) {
      std::vector<uint8_t> values = randomValues<uint8_t>(inputCountOf(c), 0, 255);
      for (uint8_t& value : values)
        value = value < 2 ? (isMostlyTrue ? 0 : value + 1) : (isMostlyTrue ? value : 0);
      std::vector<uint8_t> all(outputCountOf(c), 1);
      std::vector<uint8_t> any(all.size(), 0);
      forEachElement(c, [&](size_t i, size_t at) {
        all[at] &= values[i] != 0 ? 1 : 0;
        any[at] |= values[i] != 0 ? 1 : 0;
      });
      EXPECT_EQ(reduced(OperationType::kReduceAll, c, operand, values, operand), all);
      EXPECT_EQ(reduced(OperationType::kReduceAny, c, operand, values, operand), any);
    }
  }
}

template <typename T>
size_t searched(OperationType type, const graph::Operand& operand, const std::vector<T>& row) {
  OperationBuilder builder(type);
  graph::Operand input = operand;
  input.dimensions = {1, static_cast<uint32_t>(row.size())};
  builder.input(input, row).scalar(1).output(OperandType::kTensorInt32);
  EXPECT_TRUE(builder.run());
  return static_cast<size_t>(builder.result<int32_t>()[0]);
}

template <typename T>
void checkSearch(const graph::Operand& operand, int lowest, int highest) {
  for (const size_t size : {1, 2, 15, 16, 63, 64, 65, 255, 256, 257, 1000})
    for (const int width : {1, highest - lowest}) {
      const std::vector<T> row = randomValues<T>(size, lowest, lowest + width);
      EXPECT_EQ(searched(OperationType::kArgmax, operand, row),
                static_cast<size_t>(std::ranges::max_element(row) - row.begin()));
      EXPECT_EQ(searched(OperationType::kArgmin, operand, row),
                static_cast<size_t>(std::ranges::min_element(row) - row.begin()));
    }
}

TEST(LongReductionsTest, FirstOfTheBest) {
  checkSearch<float>(OperationBuilder::tensor(OperandType::kTensorFloat32, {}), -1000, 1000);
  checkSearch<int32_t>(OperationBuilder::tensor(OperandType::kTensorInt32, {}), -1000, 1000);
  checkSearch<int8_t>(OperationBuilder::tensor(kInt8, {}, 0.5f, 3), -128, 127);
  checkSearch<uint8_t>(OperationBuilder::tensor(kUint8, {}, 0.5f, 3), 0, 255);
  checkSearch<int16_t>(OperationBuilder::tensor(kInt16, {}, 0.5f), -32768, 32767);
}

// Searches each column of `rows` rows.
template <typename T>
void checkColumns(const graph::Operand& operand, int lowest, int highest) {
  for (const uint32_t rows : {1u, 2u, 9u, 255u, 256u, 257u, 600u})
    for (const uint32_t columns : {2u, 15u, 64u, 257u}) {
      const std::vector<T> values = randomValues<T>(2 * rows * columns, lowest, highest);
      OperationBuilder builder(OperationType::kArgmax);
      graph::Operand input = operand;
      input.dimensions = {2, rows, columns};
      builder.input(input, values).scalar(1).output(OperandType::kTensorInt32);
      ASSERT_TRUE(builder.run());
      const std::vector<int32_t> found = builder.result<int32_t>();
      for (uint32_t o = 0; o < 2; ++o)
        for (uint32_t c = 0; c < columns; ++c) {
          const auto at = [&](uint32_t row) {
            return values[(o * rows + row) * columns + c];
          };
          uint32_t best = 0;
          for (uint32_t row = 1; row < rows; ++row)
            if (at(row) > at(best)) best = row;
          ASSERT_EQ(found[o * columns + c], static_cast<int32_t>(best)) << rows << "x" << columns;
        }
    }
}

TEST(LongReductionsTest, FirstOfTheBestInColumns) {
  checkColumns<float>(OperationBuilder::tensor(OperandType::kTensorFloat32, {}), -1000, 1000);
  checkColumns<int64_t>(OperationBuilder::tensor(OperandType::kTensorInt64, {}), -1000, 1000);
  checkColumns<int8_t>(OperationBuilder::tensor(kInt8, {}, 0.5f, 3), -128, 127);
  checkColumns<uint8_t>(OperationBuilder::tensor(kUint8, {}, 0.5f, 3), 0, 3);
  checkColumns<int16_t>(OperationBuilder::tensor(kInt16, {}, 0.5f), -32768, 32767);
}

TEST(LongReductionsTest, SearchAmongNaNsAndInfinities) {
  const auto operand = OperationBuilder::tensor(OperandType::kTensorFloat32, {});
  std::vector<float> row(300, 1.0f);
  row[5] = row[299] = NAN;
  row[271] = 2.0f;
  EXPECT_EQ(searched(OperationType::kArgmax, operand, row), 271u);
  row[0] = NAN;
  EXPECT_EQ(searched(OperationType::kArgmax, operand, row), 0u);
  row = std::vector<float>(300, -INFINITY);
  EXPECT_EQ(searched(OperationType::kArgmax, operand, row), 0u);
  row[40] = row[41] = -0.0f;
  row[42] = 0.0f;
  EXPECT_EQ(searched(OperationType::kArgmax, operand, row), 40u);
}

}  // namespace
}  // namespace hearth::ops
