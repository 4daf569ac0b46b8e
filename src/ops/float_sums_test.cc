// SPDX-License-Identifier: Apache-2.0
#include "ops/float_sums.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace hearth::ops {
namespace {

constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 15, 16, 17, 33};
constexpr int64_t kColumns[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 35, 67, 130};

// Numbers whose sums are exact in float64 in any order, but not in float32.
std::vector<float> numbers(int64_t count) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<float>((i * 7919) % 1009 - 500) * (i % 3 == 0 ? 4096.0f : 0.0625f));
  return made;
}

TEST(FloatSumsTest, RowsAreAddedToTheirSums) {
  for (const int64_t rows : kRows)
    for (const int64_t columns : kColumns) {
      const std::vector<float> source = numbers(rows * columns);
      std::vector<double> sums(static_cast<size_t>(rows), 3.0);
      if (!addFloatRows(source.data(), rows, columns, sums.data()))
        GTEST_SKIP() << "This CPU has no vectors for it.";
      std::vector<double> expected(static_cast<size_t>(rows), 3.0);
      for (size_t i = 0; i < source.size(); ++i)
        expected[i / static_cast<size_t>(columns)] += static_cast<double>(source[i]);
      EXPECT_EQ(sums, expected) << rows << " " << columns;
    }
}

TEST(FloatSumsTest, ColumnsAreAddedToTheirSums) {
  for (const int64_t rows : kRows)
    for (const int64_t columns : kColumns) {
      const std::vector<float> source = numbers(rows * columns);
      std::vector<double> sums(static_cast<size_t>(columns), 3.0);
      if (!addFloatColumns(source.data(), rows, columns, sums.data()))
        GTEST_SKIP() << "This CPU has no vectors for it.";
      std::vector<double> expected(static_cast<size_t>(columns), 3.0);
      for (size_t i = 0; i < source.size(); ++i)
        expected[i % static_cast<size_t>(columns)] += static_cast<double>(source[i]);
      EXPECT_EQ(sums, expected) << rows << " " << columns;
    }
}

}  // namespace
}  // namespace hearth::ops
