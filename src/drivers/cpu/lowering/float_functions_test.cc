// SPDX-License-Identifier: Apache-2.0
// Functions of one number deviate from the reference by rounding only.
#include "drivers/cpu/lowering/float_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/microkernels/portable/vector_math.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// From subnormal to huge, of both signs, infinities and NaN.
std::vector<float> tellingFloats() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,   -0.0f, kInfinity, std::numeric_limits<float>::quiet_NaN(),
                               1e-40f, 88.5f, 88.9f,     -87.4f,
                               -103.9f};
  for (float x = -25.0f; x < 25.0f; x += 0.01f) values.push_back(x);
  for (float x = 1e-6f; x < 1e6f; x *= 1.7f) values.insert(values.end(), {x, -x});
  return values;
}

// The greatest deviation from the reference, relative to the value, or to 1 where that is greater.
double greatestDeviation(const graph::Model& model, const std::vector<float>& values) {
  const auto compared = runBoth(model, {bytesOf(values)});
  EXPECT_TRUE(compared) << compared.error().toString();
  if (!compared) return INFINITY;
  double greatest = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    float made;
    float expected;
    std::memcpy(&made, compared->made[0].data() + i * sizeof made, sizeof made);
    std::memcpy(&expected, compared->expected[0].data() + i * sizeof expected, sizeof expected);
    if (made == expected || (std::isnan(made) && std::isnan(expected))) continue;
    if (std::isnan(made) || std::isnan(expected)) return INFINITY;
    const double scale = std::max(1.0, std::abs(double{expected}));
    greatest = std::max(greatest, std::abs(double{made} - expected) / scale);
  }
  return greatest;
}

// The same for an operation whose other inputs are `scalars`.
template <typename... Scalars>
double greatestDeviation(OperationType type, const std::vector<float>& values, Scalars... scalars) {
  ModelBuilder builder;
  const Dimensions dimensions = {static_cast<uint32_t>(values.size())};
  builder.operation(type, {builder.input(kFloat, dimensions), builder.scalar(scalars)...},
                    {builder.output(kFloat, dimensions)});
  return greatestDeviation(builder.model(), values);
}

TEST(FloatFunctionsTest, DeviateByRoundingOnly) {
  const std::vector<float> values = tellingFloats();
  EXPECT_LT(greatestDeviation(OperationType::kGelu, values, false), 8e-7);
  EXPECT_LT(greatestDeviation(OperationType::kGelu, values, true), 8e-7);
  EXPECT_LT(greatestDeviation(OperationType::kExp, values), 3e-7);
  EXPECT_LT(greatestDeviation(OperationType::kSin, values), 1e-6);
  EXPECT_LT(greatestDeviation(OperationType::kCos, values), 1e-6);
  EXPECT_LT(greatestDeviation(OperationType::kTanh, values), 4e-7);
  for (const float alpha : {1.0f, 0.3f, 0.0f, -2.0f})
    EXPECT_LT(greatestDeviation(OperationType::kElu, values, alpha), 3e-7);
  EXPECT_EQ(greatestDeviation(OperationType::kSign, values), 0.0);
}

// The results of blocks of moderate numbers are those of blocks with huge ones.
TEST(FloatFunctionsTest, ExponentialsDoNotDependOnTheirNeighbours) {
  std::vector<float> values;
  for (float x = -kNearExponents; x < kNearExponents; x += 0.01f) values.push_back(x);
  ModelBuilder builder;
  const Dimensions dimensions = {static_cast<uint32_t>(values.size())};
  builder.operation(OperationType::kExp, {builder.input(kFloat, dimensions)},
                    {builder.output(kFloat, dimensions)});
  const auto near = runBoth(builder.model(), {bytesOf(values)});
  ASSERT_TRUE(near) << near.error().toString();
  std::vector<float> mixed = values;
  for (size_t i = 0; i < mixed.size(); i += 50) mixed[i] = INFINITY;
  const auto far = runBoth(builder.model(), {bytesOf(mixed)});
  ASSERT_TRUE(far) << far.error().toString();
  for (size_t i = 0; i < values.size(); ++i)
    if (i % 50 != 0) {
      ASSERT_EQ(std::memcmp(near->made[0].data() + i * sizeof(float),
                            far->made[0].data() + i * sizeof(float), sizeof(float)),
                0)
          << values[i];
    }
}

// Small results have a small relative error.
TEST(FloatFunctionsTest, SmallNumbersKeepTheirDigits) {
  for (float x = 1e-30f; x < 0.5f; x *= 1.01f) {
    for (const float value : {x, -x}) {
      EXPECT_NEAR(tanhVector(value), std::tanh(value), 4e-7 * x);
      EXPECT_NEAR(expLessOneVector(-x), std::expm1(-x), 3e-7 * x);
    }
  }
  EXPECT_EQ(tanhVector(INFINITY), 1.0f);
  EXPECT_EQ(tanhVector(-INFINITY), -1.0f);
  EXPECT_EQ(expLessOneVector(-INFINITY), -1.0f);
}

TEST(FloatFunctionsTest, SineOfManyTurnsIsExact) {
  std::vector<float> values;
  for (float x = -8192.0f; x <= 8192.0f; x += 1.37f) values.push_back(x);
  EXPECT_LT(greatestDeviation(OperationType::kSin, values), 1e-6);
  EXPECT_LT(greatestDeviation(OperationType::kCos, values), 1e-6);
}

// Angles that the vectors cannot reduce, and numbers without a sine, among small numbers.
std::vector<float> anyTurns() {
  std::vector<float> values;
  for (float x = 8000.0f; x < 3e38f; x *= 1.3f) values.insert(values.end(), {x, -x});
  values.insert(values.end(), {INFINITY, -INFINITY, NAN, 1e-40f, 3.14159274f, -1.57079637f});
  return values;
}

TEST(FloatFunctionsTest, SineOfAnyNumber) {
  EXPECT_LT(greatestDeviation(OperationType::kSin, anyTurns()), 1e-6);
  EXPECT_LT(greatestDeviation(OperationType::kCos, anyTurns()), 1e-6);
}

// Between two other operations nothing else reads the function's input, so that the output takes
// its memory.
TEST(FloatFunctionsTest, SineInPlace) {
  std::vector<float> values(20000, 0.5f);
  for (const float turn : anyTurns()) values.insert(values.begin() + 5000, {turn, 1.0f});
  ModelBuilder builder;
  const Dimensions dimensions = {static_cast<uint32_t>(values.size())};
  const uint32_t negative = builder.temporary(kFloat, dimensions);
  const uint32_t sine = builder.temporary(kFloat, dimensions);
  builder.operation(OperationType::kNeg, {builder.input(kFloat, dimensions)}, {negative});
  builder.operation(OperationType::kSin, {negative}, {sine});
  builder.operation(OperationType::kNeg, {sine}, {builder.output(kFloat, dimensions)});
  EXPECT_LT(greatestDeviation(builder.model(), values), 1e-6);
}

TEST(FloatFunctionsTest, HardSwishDeviatesByRoundingOnly) {
  EXPECT_LT(greatestDeviation(OperationType::kHardSwish, tellingFloats()), 3e-7);
}

}  // namespace
}  // namespace hearth::cpu
