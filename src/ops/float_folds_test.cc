// SPDX-License-Identifier: Apache-2.0
#include "ops/float_folds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace hearth::ops {
namespace {

constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 15, 16, 17, 33};
constexpr int64_t kColumns[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 32, 33, 35, 67, 130};

// Numbers whose sums are exact in float64 in any order, but not in float32.
std::vector<float> summands(int64_t count) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<float>((i * 7919) % 1009 - 500) * (i % 3 == 0 ? 4096.0f : 0.0625f));
  return made;
}

// Numbers whose products are exact in float64 in any order.
std::vector<float> factors(int64_t count) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i) {
    const float size = i % 5 == 0 ? 2.0f : i % 5 == 1 ? 0.5f : 1.0f;
    made.push_back(i % 7 == 0 ? -size : i % 29 == 0 ? 3.0f : size);
  }
  return made;
}

// Numbers of both signs, with NaN here and there, and sometimes in all of a row.
std::vector<float> numbers(int64_t count) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(i % 11 == 3 ? NAN : static_cast<float>((i * 7919) % 1009 - 1500 * (i % 2)));
  return made;
}

using Numbers = std::vector<float> (*)(int64_t count);

template <typename Result>
using FoldFunction = bool (*)(const float* source, int64_t rows, int64_t columns, Result* results);

// Compares a fold of rows, or of columns, with the definition, which takes one number at a time.
template <typename Result, typename Combine>
void expectFolds(FoldFunction<Result> fold, Numbers make, bool isOfRows, Result start,
                 const Combine& combine) {
  for (const int64_t rows : kRows)
    for (const int64_t columns : kColumns) {
      const std::vector<float> source = make(rows * columns);
      const auto width = static_cast<size_t>(columns);
      std::vector<Result> results(isOfRows ? static_cast<size_t>(rows) : width, start);
      if (!fold(source.data(), rows, columns, results.data()))
        GTEST_SKIP() << "This CPU has no vectors for it.";
      std::vector<Result> expected(results.size(), start);
      for (size_t i = 0; i < source.size(); ++i) {
        Result& result = expected[isOfRows ? i / width : i % width];
        result = combine(result, static_cast<Result>(source[i]));
      }
      EXPECT_EQ(results, expected) << rows << " " << columns;
    }
}

double sum(double a, double b) {
  return a + b;
}
double product(double a, double b) {
  return a * b;
}

TEST(FloatFoldsTest, RowsAreAddedToTheirSums) {
  expectFolds<double>(addFloatRows, summands, true, 3.0, sum);
}

TEST(FloatFoldsTest, ColumnsAreAddedToTheirSums) {
  expectFolds<double>(addFloatColumns, summands, false, 3.0, sum);
}

TEST(FloatFoldsTest, RowsMultiplyTheirProducts) {
  expectFolds<double>(multiplyFloatRows, factors, true, 5.0, product);
}

TEST(FloatFoldsTest, ColumnsMultiplyTheirProducts) {
  expectFolds<double>(multiplyFloatColumns, factors, false, 5.0, product);
}

TEST(FloatFoldsTest, TheGreatestOfRowsIsFoundAndNanDoesNotCount) {
  for (const float start : {-INFINITY, 100.0f})
    expectFolds<float>(raiseToFloatRows, numbers, true, start,
                       [](float a, float b) { return b > a ? b : a; });
}

TEST(FloatFoldsTest, TheLeastOfRowsIsFoundAndNanDoesNotCount) {
  for (const float start : {INFINITY, -1000.0f})
    expectFolds<float>(lowerToFloatRows, numbers, true, start,
                       [](float a, float b) { return b < a ? b : a; });
}

}  // namespace
}  // namespace hearth::ops
