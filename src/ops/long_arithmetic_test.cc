// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic with vectorised loops, compared with a loop over single elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "ops/quantization.h"
#include "ops/testing/operation_builder.h"
#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

size_t countOf(const Dimensions& dimensions) {
  size_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

// Each operand has a scale of its own. Results must be the nearest steps of results in double,
// except close to the middle between two steps.
void checkSixteenBits(OperationType type, const Dimensions& a, const Dimensions& b, float scaleA,
                      float scaleB, float scale, int32_t activation) {
  const std::vector<int16_t> left = randomValues<int16_t>(countOf(a), -32768, 32767);
  const std::vector<int16_t> right = randomValues<int16_t>(countOf(b), -32768, 32767);
  const graph::Operand output = OperationBuilder::tensor(kInt16, {}, scale);
  OperationBuilder builder(type);
  builder.input(OperationBuilder::tensor(kInt16, a, scaleA), left)
      .input(OperationBuilder::tensor(kInt16, b, scaleB), right)
      .scalar(activation)
      .output(output);
  ASSERT_TRUE(builder.run());
  const std::vector<int16_t> made = builder.result<int16_t>();
  for (size_t i = 0; i < made.size(); ++i) {
    // The shapes are [n], [m, n], [m, 1] or [1], where n is 67, the last dimension of the output.
    const auto indexIn = [&](const Dimensions& dimensions) {
      if (countOf(dimensions) == 1) return size_t{0};
      if (dimensions.back() == 1) return i / 67;
      return dimensions.size() == 1 ? i % 67 : i;
    };
    const double x = scaleA * static_cast<double>(left[indexIn(a)]);
    const double y = scaleB * static_cast<double>(right[indexIn(b)]);
    double value = type == OperationType::kAdd   ? x + y
                   : type == OperationType::kSub ? x - y
                                                 : x * y;
    if (activation == 1) value = std::max(value, 0.0);
    if (activation == 3) value = std::clamp(value, 0.0, 6.0);
    const double steps = std::clamp(value / scale, -32768.0, 32767.0);
    ASSERT_NEAR(made[i], steps, 0.51) << i;
    // Sums in steps of powers of two are exact.
    if (type != OperationType::kMul && scaleA == 0x1p-12f && scaleB == 0x1p-12f &&
        scale == 0x1p-11f)
      ASSERT_EQ(made[i], quantize(value, output)) << i;
  }
}

TEST(LongArithmeticTest, SixteenBits) {
  const std::vector<Dimensions> shapes = {{19, 67}, {67}, {19, 1}, {1}};
  for (const OperationType type : {OperationType::kAdd, OperationType::kSub, OperationType::kMul})
    for (size_t i = 0; i < shapes.size(); ++i)
      for (const int32_t activation : {0, 1, 3}) {
        checkSixteenBits(type, {19, 67}, shapes[i], 0x1p-12f, 0x1p-12f, 0x1p-11f, activation);
        checkSixteenBits(type, shapes[i], {19, 67}, 0x1p-12f, 0x1p-12f, 0x1p-12f, activation);
        checkSixteenBits(type, shapes[i], {19, 67}, 3e-4f, 1.7e-4f, 4.1e-4f, activation);
        checkSixteenBits(type, {19, 67}, shapes[i], 3e-4f, 1.7e-4f, 1e-5f, activation);
      }
}

TEST(LongArithmeticTest, SixteenBitsOfScalesFarApart) {
  const std::vector<int16_t> left = {0, 1, -1, 7, 7, -32768};
  const std::vector<int16_t> right = {0, 0, 0, -7, 7, -32768};
  const auto made = [&](OperationType type) {
    OperationBuilder builder(type);
    builder.input(OperationBuilder::tensor(kInt16, {6}, 1e30f), left)
        .input(OperationBuilder::tensor(kInt16, {6}, 1e30f), right)
        .scalar(0)
        .output(OperationBuilder::tensor(kInt16, {}, 1e-30f));
    EXPECT_TRUE(builder.run());
    return builder.result<int16_t>();
  };
  EXPECT_EQ(made(OperationType::kAdd), (std::vector<int16_t>{0, 32767, -32768, 0, 32767, -32768}));
  EXPECT_EQ(made(OperationType::kSub), (std::vector<int16_t>{0, 32767, -32768, 32767, 0, 0}));
}

// The definition: a quotient by 0 is 0, and that of the least number by -1 wraps.
template <typename T>
T truncatedQuotient(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  return b == -1 ? static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a)) : a / b;
}

template <typename T>
void checkDivisions(OperandType operandType) {
  constexpr T kLeast = std::numeric_limits<T>::min();
  constexpr T kGreatest = std::numeric_limits<T>::max();
  std::vector<T> values = {kLeast, kLeast + 1, kGreatest, kGreatest - 1, 0, 1, -1, 2, -2, 3,
                           -3,     7,          -7};
  for (const int32_t value : randomValues<int32_t>(50, INT32_MIN / 2, INT32_MAX / 2))
    values.push_back(static_cast<T>(value) * (kGreatest / INT32_MAX));
  const auto count = static_cast<uint32_t>(values.size());
  const auto divided = [&](OperationType type) {
    OperationBuilder builder(type);
    builder.input(OperationBuilder::tensor(operandType, {count, 1}), values)
        .input(OperationBuilder::tensor(operandType, {count}), values);
    if (type == OperationType::kDiv || type == OperationType::kTruncatedDiv) builder.scalar(0);
    builder.output(operandType);
    EXPECT_TRUE(builder.run());
    return builder.template result<T>();
  };
  const auto floors = divided(OperationType::kFloorDiv);
  EXPECT_EQ(divided(OperationType::kDiv), floors);
  const auto whole = divided(OperationType::kTruncatedDiv);
  const auto remainders = divided(OperationType::kFloorMod);
  for (size_t i = 0; i < floors.size(); ++i) {
    const T a = values[i / count];
    const T b = values[i % count];
    const T quotient = truncatedQuotient(a, b);
    const T rest = b == 0 || b == -1 ? T{0} : a % b;
    const bool isBelow = rest != 0 && (a < 0) != (b < 0);
    EXPECT_EQ(floors[i], isBelow ? quotient - 1 : quotient) << a << " / " << b;
    EXPECT_EQ(whole[i], quotient) << a << " / " << b;
    EXPECT_EQ(remainders[i], isBelow ? rest + b : rest) << a << " / " << b;
  }
}

TEST(LongArithmeticTest, DivisionOfIntegers) {
  checkDivisions<int32_t>(kInt32);
  checkDivisions<int64_t>(kInt64);
}

TEST(LongArithmeticTest, RemaindersOfFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,       -0.0f,    1.0f,         -1.0f,       kInfinity,
                               -kInfinity, NAN,      1e-45f,       -1e-45f,     1e-38f,
                               3e38f,      -3e38f,   0.1f,         -0.1f,       1.0f / 3,
                               0x1p29f,    0x1p-29f, 536870911.0f, 0.999999940f};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::uniform_int_distribution<int> exponent(-40, 40);
  for (int i = 0; i < 200; ++i) values.push_back(std::ldexp(uniform(random), exponent(random)));
  const auto count = static_cast<uint32_t>(values.size());
  OperationBuilder builder(OperationType::kFloorMod);
  builder.input({count, 1}, values).input({count}, values).output();
  ASSERT_TRUE(builder.run());
  const std::vector<float> made = builder.result<float>();
  for (size_t i = 0; i < made.size(); ++i) {
    const float a = values[i / count];
    const float b = values[i % count];
    const float remainder = std::fmod(a, b);
    const bool isOther = remainder != 0.0f && (remainder < 0.0f) != (b < 0.0f);
    const float expected = isOther ? remainder + b : remainder;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(made[i])) << a << " mod " << b;
    } else {
      EXPECT_EQ(made[i], expected) << a << " mod " << b;
      EXPECT_EQ(std::signbit(made[i]), std::signbit(expected)) << a << " mod " << b;
    }
  }
}

TEST(LongArithmeticTest, ChoicesBetweenBytes) {
  constexpr uint32_t kCount = 1003;
  const auto operand =
      OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {kCount}, 0.5f, 3);
  const std::vector<uint8_t> which = randomValues<uint8_t>(kCount, 0, 2);
  const std::vector<int8_t> yes = randomValues<int8_t>(kCount, -128, 127);
  std::vector<int8_t> no = yes;
  std::ranges::reverse(no);
  for (const OperationType type : {OperationType::kSelect, OperationType::kSelectV2}) {
    OperationBuilder builder(type);
    builder.input(OperationBuilder::tensor(kBool8, {kCount}), which)
        .input(operand, yes)
        .input(operand, no)
        .output(operand);
    ASSERT_TRUE(builder.run());
    const std::vector<int8_t> made = builder.result<int8_t>();
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(made[i], which[i] != 0 ? yes[i] : no[i]) << i;
  }
}

TEST(LongArithmeticTest, FloatsToSixteenBits) {
  std::vector<float> values = {NAN,   INFINITY,      -INFINITY, 0.25f, -0.25f, 0.75f,    -0.75f,
                               -0.0f, 0.2499999851f, 16383.75f, 1e30f, -1e30f, -16384.5f};
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i * i % 971) / 8.0f - 60.0f);
  const graph::Operand output = OperationBuilder::tensor(kInt16, {}, 0.5f);
  OperationBuilder builder(OperationType::kQuantize);
  builder.input({static_cast<uint32_t>(values.size())}, values).output(output);
  ASSERT_TRUE(builder.run());
  const std::vector<int16_t> made = builder.result<int16_t>();
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(made[i], quantize(values[i], output)) << values[i];
}

template <typename T>
void checkDequantize(OperandType type, int32_t zeroPoint) {
  const std::vector<T> values =
      randomValues<T>(1003, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
  OperationBuilder builder(OperationType::kDequantize);
  builder.input(OperationBuilder::tensor(type, {17, 59}, 0.3f, zeroPoint), values).output();
  ASSERT_TRUE(builder.run());
  const std::vector<float> made = builder.result<float>();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(made[i], 0.3f * static_cast<float>(values[i] - zeroPoint)) << i;
}

TEST(LongArithmeticTest, StepsToFloats) {
  checkDequantize<int8_t>(OperandType::kTensorQuant8AsymmSigned, -7);
  checkDequantize<int8_t>(OperandType::kTensorQuant8Symm, 0);
  checkDequantize<uint8_t>(OperandType::kTensorQuant8Asymm, 200);
  checkDequantize<int16_t>(kInt16, 0);
  checkDequantize<uint16_t>(OperandType::kTensorQuant16Asymm, 65535);
}

TEST(LongArithmeticTest, TruthOfIntegers) {
  const std::vector<int32_t> values = randomValues<int32_t>(1003, -1, 1);
  OperationBuilder builder(OperationType::kCast);
  builder.input({1003}, values).output(kBool8);
  ASSERT_TRUE(builder.run());
  const std::vector<uint8_t> made = builder.result<uint8_t>();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(made[i], values[i] != 0 ? 1 : 0) << i;
}

}  // namespace
}  // namespace hearth::ops
