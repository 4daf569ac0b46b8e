// SPDX-License-Identifier: Apache-2.0
#include "ops/fixed_point.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hearth::ops {
namespace {

TEST(FixedPointTest, MultipliersComeFromRealFactors) {
  const FixedMultiplier half = toFixedMultiplier(0.5);
  EXPECT_EQ(half.multiplier, 1 << 30);
  EXPECT_EQ(half.shift, 0);
  // The mantissa rounds up to 1, which the exponent absorbs.
  EXPECT_EQ(toFixedMultiplier(std::nextafter(1.0, 0.0)).shift, 1);
  EXPECT_EQ(toFixedMultiplier(0.0).multiplier, 0);
  EXPECT_EQ(toFixedMultiplier(-1.0).multiplier, 0);
  EXPECT_EQ(toFixedMultiplier(NAN).multiplier, 0);
  EXPECT_EQ(toFixedMultiplier(1e-30).multiplier, 0);
  EXPECT_EQ(toFixedMultiplier(INFINITY).shift, 30);
}

TEST(FixedPointTest, MultipliesWithHalvesAwayFromZero) {
  EXPECT_EQ(multiply(3, toFixedMultiplier(0.5)), 2);
  EXPECT_EQ(multiply(-5, toFixedMultiplier(0.25)), -1);
  EXPECT_EQ(multiply(1000, toFixedMultiplier(3.0)), 3000);
  EXPECT_EQ(multiply(INT_MAX, toFixedMultiplier(4.0)), INT_MAX / 2 + 1);
  // The shift by 30 saturates first: -2^31 times the mantissa of 1e9.
  EXPECT_EQ(multiply(INT_MIN, toFixedMultiplier(1e9)), -2000000000);
}

TEST(FixedPointTest, MultipliesWideNumbersWithHalvesUpwards) {
  EXPECT_EQ(multiplyWide(3, toFixedMultiplier(0.5)), 2);
  EXPECT_EQ(multiplyWide(-3, toFixedMultiplier(0.5)), -1);
  EXPECT_EQ(multiplyWide(int64_t{1} << 40, toFixedMultiplier(0x1p-20)), 1 << 20);
  EXPECT_EQ(multiplyWide(-(int64_t{1} << 47), toFixedMultiplier(0x1p-30)), -(1 << 17));
  EXPECT_EQ(multiplyWide(1000, toFixedMultiplier(0.0)), 0);
  EXPECT_EQ(multiplyWide(int64_t{1} << 40, toFixedMultiplier(1.0)), INT32_MAX);
  EXPECT_EQ(multiplyWide(-(int64_t{1} << 40), toFixedMultiplier(1.0)), INT32_MIN);
}

TEST(FixedPointTest, DividesWithHalvesAwayFromZero) {
  EXPECT_EQ(divideByPowerOfTwo(5, 1), 3);
  EXPECT_EQ(divideByPowerOfTwo(-5, 1), -3);
  EXPECT_EQ(divideByPowerOfTwo(-6, 2), -2);
  EXPECT_EQ(divideByPowerOfTwo(-5, 2), -1);
  EXPECT_EQ(divideByPowerOfTwo(7, 0), 7);
  EXPECT_EQ(divideByPowerOfTwo(INT_MAX, 31), 1);
  EXPECT_EQ(divideByPowerOfTwo(INT_MIN, 31), -1);
}

TEST(FixedPointTest, InverseSquareRoot) {
  for (const int32_t value : {2, 3, 10, 100, 12345, 1 << 20, 1 << 29, INT_MAX}) {
    const FixedMultiplier root = inverseSquareRoot(value);
    const double real = std::ldexp(static_cast<double>(root.multiplier), root.shift - 31);
    EXPECT_NEAR(real * std::sqrt(static_cast<double>(value)), 1.0, 1e-4) << value;
  }
}

TEST(FixedPointTest, LogisticIsCloseAndSymmetric) {
  for (int value = -32768; value <= 32767; value += 13) {
    const int16_t result = logisticQ15(static_cast<int16_t>(value));
    const double expected = 32768.0 / (1.0 + std::exp(-value / 4096.0));
    ASSERT_NEAR(result, expected, 24.0) << value;
    if (value > -32768 && value != 0) {
      ASSERT_EQ(logisticQ15(static_cast<int16_t>(-value)), 32767 - result) << value;
    }
  }
}

TEST(FixedPointTest, TanhIsCloseAndOdd) {
  for (int bits = 0; bits <= 6; ++bits) {
    for (int value = -32768; value <= 32767; value += 13) {
      const int16_t result = tanhQ15(static_cast<int16_t>(value), bits);
      const double expected = 32768.0 * std::tanh(std::ldexp(value, bits - 15));
      ASSERT_NEAR(result, expected, 40.0) << value << " with " << bits;
      if (value > -32768) {
        ASSERT_EQ(tanhQ15(static_cast<int16_t>(-value), bits), -result) << value;
      }
    }
  }
}

TEST(FixedPointTest, ArraysHaveTheResultsOfSingleNumbers) {
  std::vector<int16_t> values;
  for (int32_t value = INT16_MIN; value <= INT16_MAX; ++value)
    values.push_back(static_cast<int16_t>(value));
  std::vector<int16_t> results(values.size());
  logisticQ15Each(values, results.data());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(results[i], logisticQ15(values[i])) << values[i];
  for (int integerBits = 0; integerBits <= 6; ++integerBits) {
    results = values;
    tanhQ15Each(results, integerBits, results.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(results[i], tanhQ15(values[i], integerBits)) << values[i] << ' ' << integerBits;
  }
}

TEST(FixedPointTest, ArraysAreMultipliedLikeSingleNumbers) {
  std::vector<int32_t> values = {0, 1, -1, INT_MAX, INT_MIN, INT_MAX / 2, INT_MIN / 2};
  for (int32_t i = 0; i < 100; ++i) values.push_back((i - 50) * 12345678);
  for (const double factor : {0.0, 1e-9, 0x1p-31, 0.3, 0.5, 1.0, 3.7, 1e9, double{INFINITY}}) {
    std::vector<int32_t> results(values.size());
    multiplyEach(values, toFixedMultiplier(factor), results.data());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(results[i], multiply(values[i], toFixedMultiplier(factor)))
          << values[i] << " x " << factor;
  }
}

}  // namespace
}  // namespace hearth::ops
