// SPDX-License-Identifier: Apache-2.0
// Our powers and arc tangents differ from the C library's by one unit in the last place at most,
// and not at all for zeros, infinities and NaN.
#include "drivers/cpu/lowering/float_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct Pairs {
  std::vector<float> a, b;
};

// All pairs of numbers that are special cases.
Pairs tellingPairs() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,
                               1e-40f,
                               1.17549435e-38f,
                               3.4e38f,
                               1.0f,
                               0.99999994f,
                               1.0000001f,
                               2.0f,
                               0.5f,
                               3.0f,
                               0.41421357f,
                               2.4142137f,
                               kInfinity,
                               std::numeric_limits<float>::quiet_NaN()};
  for (float x = 1.3e-30f; x < 1e30f; x *= 7.3f) values.push_back(x);
  for (float x = 0.1f; x < 20.0f; x += 0.37f) values.push_back(x);
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  Pairs pairs;
  for (const float a : values) {
    for (const float b : values) {
      pairs.a.push_back(a);
      pairs.b.push_back(b);
    }
  }
  return pairs;
}

graph::Model modelOf(OperationType type, uint32_t countA, uint32_t countB) {
  ModelBuilder builder;
  const uint32_t a = builder.input(kFloat, {countA});
  const uint32_t b = builder.input(kFloat, {countB});
  builder.operation(type, {a, b}, {builder.output(kFloat, {std::max(countA, countB)})});
  return builder.model();
}

// Units in the last place between numbers of one sign; UINT32_MAX for others.
uint32_t distance(float made, float expected) {
  uint32_t bits[2];
  std::memcpy(&bits[0], &made, sizeof made);
  std::memcpy(&bits[1], &expected, sizeof expected);
  if (bits[0] == bits[1] || (std::isnan(made) && std::isnan(expected))) return 0;
  if (std::isnan(made) || std::isnan(expected) || std::signbit(made) != std::signbit(expected))
    return UINT32_MAX;
  return bits[0] > bits[1] ? bits[0] - bits[1] : bits[1] - bits[0];
}

void compare(OperationType type, const Pairs& pairs) {
  const graph::Model model =
      modelOf(type, static_cast<uint32_t>(pairs.a.size()), static_cast<uint32_t>(pairs.b.size()));
  const auto compared = runBoth(model, {bytesOf(pairs.a), bytesOf(pairs.b)});
  ASSERT_TRUE(compared) << compared.error().toString();
  const size_t count = std::max(pairs.a.size(), pairs.b.size());
  ASSERT_EQ(compared->made[0].size(), count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    float made;
    float expected;
    std::memcpy(&made, compared->made[0].data() + i * sizeof made, sizeof made);
    std::memcpy(&expected, compared->expected[0].data() + i * sizeof expected, sizeof expected);
    ASSERT_LE(distance(made, expected), 1u)
        << pairs.a[pairs.a.size() == 1 ? 0 : i] << ", " << pairs.b[pairs.b.size() == 1 ? 0 : i]
        << ": " << made << ", not " << expected;
  }
}

class FloatPairsTest : public testing::TestWithParam<OperationType> {};

TEST_P(FloatPairsTest, DeviateByTheLastDigit) {
  compare(GetParam(), tellingPairs());
}

TEST_P(FloatPairsTest, OneNumberForAll) {
  const std::vector<float> values = randomFloats(5000, 1, 20.0f);
  for (const float one : {0.5f, 3.0f, -1.5f, 2.0f, 0.0f, 1.0f}) {
    compare(GetParam(), {values, {one}});
    compare(GetParam(), {{one}, values});
  }
  compare(GetParam(), {{0.7f}, {1.9f}});
}

// Only plain numbers, from their whole range.
TEST_P(FloatPairsTest, RandomNumbers) {
  Pairs pairs = {randomFloats(100000, 2, 50.0f), randomFloats(100000, 3, 50.0f)};
  if (GetParam() == OperationType::kPow)
    for (float& base : pairs.a) base = std::fabs(base) + 1e-20f;
  compare(GetParam(), pairs);
}

INSTANTIATE_TEST_SUITE_P(Functions, FloatPairsTest,
                         testing::Values(OperationType::kPow, OperationType::kAtan2));

// Pairs where both inputs are repeated, integers and squares run on kernels that the reference
// device shares, so the expected numbers are the C library's.
TEST(FloatPairsLowering, RepeatedDimensionsOfBothAreShared) {
  constexpr uint32_t kRows = 7;
  constexpr uint32_t kColumns = 5;
  for (const OperationType type : {OperationType::kPow, OperationType::kAtan2}) {
    std::vector<float> column = randomFloats(kRows, 1, 4.0f);
    const std::vector<float> row = randomFloats(kColumns, 2, 4.0f);
    if (type == OperationType::kPow)
      for (float& base : column) base = std::fabs(base);
    ModelBuilder builder;
    const uint32_t a = builder.input(kFloat, {kRows, 1});
    const uint32_t b = builder.input(kFloat, {1, kColumns});
    builder.operation(type, {a, b}, {builder.output(kFloat, {kRows, kColumns})});
    const auto compared = runBoth(builder.model(), {bytesOf(column), bytesOf(row)});
    ASSERT_TRUE(compared) << compared.error().toString();
    ASSERT_EQ(compared->made[0].size(), kRows * kColumns * sizeof(float));
    for (size_t i = 0; i < kRows * kColumns; ++i) {
      const double left = column[i / kColumns];
      const double right = row[i % kColumns];
      const auto expected = static_cast<float>(
          type == OperationType::kPow ? std::pow(left, right) : std::atan2(left, right));
      float made;
      std::memcpy(&made, compared->made[0].data() + i * sizeof made, sizeof made);
      EXPECT_LE(distance(made, expected), 1u) << left << ", " << right << ": " << made;
    }
  }
}

TEST(FloatPairsLowering, WholeNumbersAreShared) {
  ModelBuilder builder;
  constexpr auto kInt32 = OperandType::kTensorInt32;
  const std::vector<int32_t> bases = {2, 3, -3, 10, 0, 7};
  const std::vector<int32_t> exponents = {10, 4, 3, 0, 5, 1};
  const std::vector<int32_t> powers = {1024, 81, -27, 1, 0, 7};
  const uint32_t a = builder.input(kInt32, {6});
  const uint32_t b = builder.input(kInt32, {6});
  builder.operation(OperationType::kPow, {a, b}, {builder.output(kInt32, {6})});
  const auto compared = runBoth(builder.model(), {bytesOf(bases), bytesOf(exponents)});
  ASSERT_TRUE(compared) << compared.error().toString();
  EXPECT_EQ(compared->made[0], bytesOf(powers));
}

TEST(FloatPairsLowering, SquaresAreProducts) {
  const std::vector<float> values = randomFloats(5000, 1, 1e3f);
  std::vector<float> squares;
  for (const float value : values) squares.push_back(value * value);
  ModelBuilder builder;
  const uint32_t a = builder.input(kFloat, {5000});
  const uint32_t two = builder.constant(kFloat, {1}, std::vector<float>{2.0f});
  builder.operation(OperationType::kPow, {a, two}, {builder.output(kFloat, {5000})});
  const auto compared = runBoth(builder.model(), {bytesOf(values)});
  ASSERT_TRUE(compared) << compared.error().toString();
  EXPECT_EQ(compared->made[0], bytesOf(squares));
}

}  // namespace
}  // namespace hearth::cpu
