// SPDX-License-Identifier: Apache-2.0
// Activations, unary arithmetic, PRELU, comparisons and logic.
#include "ops/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/fixed_point.h"
#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

template <typename T>
std::vector<uint8_t> compare(OperationType type, graph::Operand a, std::vector<T> aValues,
                             graph::Operand b, std::vector<T> bValues) {
  OperationBuilder builder(type);
  builder.input(a, aValues).input(b, bValues).output(kBool8);
  EXPECT_TRUE(builder.run());
  return builder.result<uint8_t>();
}

TEST(ActivationTest, Floats) {
  EXPECT_THAT(apply(OperationType::kRelu, {-1, 7}), ElementsAre(0, 7));
  EXPECT_THAT(apply(OperationType::kRelu1, {-3, 7, 0.5f}), ElementsAre(-1, 1, 0.5f));
  EXPECT_THAT(apply(OperationType::kRelu6, {-1, 7, 3}), ElementsAre(0, 6, 3));
  EXPECT_THAT(apply(OperationType::kHardSwish, {-4, -1, 1, 4}),
              ElementsAre(0, FloatNear(-1.0f / 3, 1e-6f), FloatNear(2.0f / 3, 1e-6f), 4));
  EXPECT_THAT(apply(OperationType::kLogistic, {0, 1000, -1000}), ElementsAre(0.5f, 1, 0));
  EXPECT_THAT(apply(OperationType::kTanh, {0, 1000, -1000}), ElementsAre(0, 1, -1));
}

TEST(ActivationTest, Elu) {
  OperationBuilder builder(OperationType::kElu);
  builder.input({3}, std::vector<float>{-1000, 0, 2}).scalar(0.5f).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(-0.5f, 0, 2));
}

TEST(ActivationTest, QuantizedOutputsHaveFixedScales) {
  const auto status = [](OperationType type, OperandType operandType, float scale, int32_t zero) {
    OperationBuilder builder(type);
    builder.input(OperationBuilder::tensor(operandType, {1}, 0.5f, 0), std::vector<uint8_t>{4})
        .output(OperationBuilder::tensor(operandType, {}, scale, zero));
    return builder.validate();
  };
  EXPECT_TRUE(status(OperationType::kLogistic, kUint8, 1.0f / 256, 0));
  EXPECT_TRUE(status(OperationType::kLogistic, kInt8, 1.0f / 256, -128));
  EXPECT_FALSE(status(OperationType::kLogistic, kInt8, 1.0f / 256, 0));
  EXPECT_TRUE(status(OperationType::kTanh, kUint8, 1.0f / 128, 128));
  EXPECT_FALSE(status(OperationType::kTanh, kUint8, 1.0f / 256, 128));
}

TEST(ActivationTest, LogisticOfSigned) {
  OperationBuilder builder(OperationType::kLogistic);
  builder.input(OperationBuilder::tensor(kInt8, {3}, 0.1f, 10), std::vector<int8_t>{10, 127, -128})
      .output(OperationBuilder::tensor(kInt8, {}, 1.0f / 256, -128));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(0, 127, -128));
}

TEST(UnaryArithmeticTest, Floats) {
  EXPECT_THAT(apply(OperationType::kAbs, {-2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(apply(OperationType::kNeg, {-2, 3}), ElementsAre(2, -3));
  EXPECT_THAT(apply(OperationType::kFloor, {-1.5f, 1.5f}), ElementsAre(-2, 1));
  EXPECT_THAT(apply(OperationType::kSqrt, {9}), ElementsAre(3));
  EXPECT_THAT(apply(OperationType::kRsqrt, {4, 0}), ElementsAre(0.5f, INFINITY));
  EXPECT_THAT(apply(OperationType::kExp, {0}), ElementsAre(1));
  EXPECT_THAT(apply(OperationType::kLog, {1, 0}), ElementsAre(0, -INFINITY));
  EXPECT_THAT(apply(OperationType::kSin, {0}), ElementsAre(0));
  EXPECT_TRUE(std::isnan(apply(OperationType::kSqrt, {-1})[0]));
}

TEST(UnaryArithmeticTest, AbsAndNegKeepTheLeastInteger) {
  for (const OperationType type : {OperationType::kAbs, OperationType::kNeg}) {
    OperationBuilder builder(type);
    builder.input({2}, std::vector<int32_t>{INT32_MIN, -3}).output(OperandType::kTensorInt32);
    ASSERT_TRUE(builder.run());
    EXPECT_THAT(builder.result<int32_t>(), ElementsAre(INT32_MIN, 3));
  }
}

TEST(UnaryArithmeticTest, WrongTypesAreRefused) {
  OperationBuilder builder(OperationType::kExp);
  builder.input({1}, std::vector<int32_t>{1}).output(OperandType::kTensorInt32);
  EXPECT_FALSE(builder.validate());
  OperationBuilder output(OperationType::kExp);
  output.input({1}, std::vector<float>{1}).output(OperandType::kTensorFloat16);
  EXPECT_FALSE(output.validate());
}

TEST(RealValuesTest, NanAndInfinityOfQuantizedResults) {
  // log gives NaN below zero and -infinity at zero.
  OperationBuilder builder(OperationType::kLog);
  builder.input(OperationBuilder::tensor(kUint8, {3}, 1.0f, 10), std::vector<uint8_t>{9, 10, 11})
      .output(OperationBuilder::tensor(kUint8, {}, 1.0f, 77));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(77, 0, 77));
}

TEST(PreluTest, SlopePerChannel) {
  OperationBuilder builder(OperationType::kPrelu);
  builder.input({2, 2}, std::vector<float>{-1, -1, 2, -3})
      .input({2}, std::vector<float>{0.5f, 2})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(-0.5f, -2, 2, -6));

  OperationBuilder halves(OperationType::kPrelu);
  halves.input({2}, std::vector<Half>{Half(-4), Half(3)})
      .input({1}, std::vector<Half>{Half(0.25f)})
      .output(OperandType::kTensorFloat16);
  ASSERT_TRUE(halves.run());
  EXPECT_THAT(halves.result<Half>(), ElementsAre(Half(-1), Half(3)));
}

// The expected results are those of TFLite's LEAKY_RELU.
TEST(PreluTest, SymmetricIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  const auto run = [&](float slope, float scale) {
    OperationBuilder builder(OperationType::kPrelu);
    builder
        .input(OperationBuilder::tensor(type, {6}, 1.0f / 4096),
               std::vector<int16_t>{-32768, -4097, -5, 0, 3, 32767})
        .input(OperationBuilder::tensor(type, {1}, std::abs(slope)),
               std::vector<int16_t>{static_cast<int16_t>(slope < 0.0f ? -1 : 1)})
        .output(OperationBuilder::tensor(type, {}, scale));
    EXPECT_TRUE(builder.run());
    return builder.result<int16_t>();
  };
  EXPECT_THAT(run(0.2f, 1.0f / 3000), ElementsAre(-4800, -600, -1, 0, 2, 23999));
  EXPECT_THAT(run(-1.7f, 1.0f / 20000), ElementsAre(32767, 32767, 42, 0, 15, 32767));
}

TEST(PreluTest, LongRowsIn16BitsAreRoundedTwice) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  for (const float outputScale : {1e-3f, 7e-6f, 3.0f}) {
    const float scale = 1.0f / 4096;
    const float slopeScale = 0.01f;
    std::vector<int16_t> values;
    std::vector<int16_t> slopes;
    for (int i = 0; i < 1000; ++i) {
      values.push_back(static_cast<int16_t>(i * 65537 % 65536 * 67 - 32768));
      slopes.push_back(static_cast<int16_t>(i * 31 - 15000));
    }
    OperationBuilder builder(OperationType::kPrelu);
    builder.input(OperationBuilder::tensor(type, {1000}, scale), values)
        .input(OperationBuilder::tensor(type, {1000}, slopeScale), slopes)
        .output(OperationBuilder::tensor(type, {}, outputScale));
    ASSERT_TRUE(builder.run());
    const std::vector<int16_t> result = builder.result<int16_t>();
    const FixedMultiplier positive = toFixedMultiplier(scale / outputScale);
    const FixedMultiplier negative = toFixedMultiplier(scale * slopeScale / outputScale);
    for (size_t i = 0; i < values.size(); ++i) {
      const int32_t scaled =
          values[i] < 0 ? multiply(values[i] * slopes[i], negative) : multiply(values[i], positive);
      ASSERT_EQ(result[i], std::clamp(scaled, -32768, 32767)) << values[i] << " " << slopes[i];
    }
  }
}

TEST(ComparisonTest, AllOfThem) {
  const graph::Operand operand = OperationBuilder::tensor(OperandType::kTensorInt32, {3});
  const std::vector<int32_t> a = {1, 2, 3};
  const std::vector<int32_t> b = {2, 2, 2};
  const auto run = [&](OperationType type) {
    return compare(type, operand, a, operand, b);
  };
  EXPECT_THAT(run(OperationType::kEqual), ElementsAre(0, 1, 0));
  EXPECT_THAT(run(OperationType::kNotEqual), ElementsAre(1, 0, 1));
  EXPECT_THAT(run(OperationType::kLess), ElementsAre(1, 0, 0));
  EXPECT_THAT(run(OperationType::kLessEqual), ElementsAre(1, 1, 0));
  EXPECT_THAT(run(OperationType::kGreater), ElementsAre(0, 0, 1));
  EXPECT_THAT(run(OperationType::kGreaterEqual), ElementsAre(0, 1, 1));
}

TEST(ComparisonTest, DifferentScales) {
  EXPECT_THAT(compare(OperationType::kEqual, OperationBuilder::tensor(kUint8, {2}, 1.0f, 128),
                      std::vector<uint8_t>{132, 132},
                      OperationBuilder::tensor(kUint8, {2}, 2.0f, 0), std::vector<uint8_t>{2, 3}),
              ElementsAre(1, 0));
}

TEST(ComparisonTest, EveryPairOfBytesWithDifferentScales) {
  const auto check = []<typename T>(OperandType type, T lowest) {
    std::vector<T> a, b;
    for (int i = 0; i < 256; ++i) {
      for (int j = 0; j < 256; ++j) {
        a.push_back(static_cast<T>(lowest + i));
        b.push_back(static_cast<T>(lowest + j));
      }
    }
    const graph::Operand left = OperationBuilder::tensor(type, {256, 256}, 0.3f, lowest + 7);
    const graph::Operand right = OperationBuilder::tensor(type, {256, 256}, 0.1f, lowest + 200);
    const auto run = [&](OperationType operation) {
      return compare(operation, left, a, right, b);
    };
    const std::vector<uint8_t> less = run(OperationType::kLess);
    const std::vector<uint8_t> lessEqual = run(OperationType::kLessEqual);
    const std::vector<uint8_t> equal = run(OperationType::kEqual);
    for (size_t i = 0; i < a.size(); ++i) {
      const float x = 0.3f * static_cast<float>(a[i] - lowest - 7);
      const float y = 0.1f * static_cast<float>(b[i] - lowest - 200);
      ASSERT_EQ(less[i], x < y) << i;
      ASSERT_EQ(lessEqual[i], x <= y) << i;
      ASSERT_EQ(equal[i], x == y) << i;
    }
  };
  check.operator()<uint8_t>(kUint8, 0);
  check.operator()<int8_t>(OperandType::kTensorQuant8AsymmSigned, -128);
}

TEST(ComparisonTest, NanIsUnequalToItself) {
  const graph::Operand operand = OperationBuilder::tensor(OperandType::kTensorFloat32, {1});
  const std::vector<float> nan = {NAN};
  EXPECT_THAT(compare(OperationType::kEqual, operand, nan, operand, nan), ElementsAre(0));
  EXPECT_THAT(compare(OperationType::kNotEqual, operand, nan, operand, nan), ElementsAre(1));
}

TEST(LogicalTest, AnyByteButZeroIsTrue) {
  const graph::Operand operand = OperationBuilder::tensor(kBool8, {4});
  const std::vector<uint8_t> a = {0, 0, 255, 1};
  const std::vector<uint8_t> b = {0, 2, 0, 128};
  EXPECT_THAT(compare(OperationType::kLogicalAnd, operand, a, operand, b), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(compare(OperationType::kLogicalOr, operand, a, operand, b), ElementsAre(0, 1, 1, 1));
  OperationBuilder builder(OperationType::kLogicalNot);
  builder.input(operand, b).output(kBool8);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(1, 0, 1, 0));
}

}  // namespace
}  // namespace hearth::ops
