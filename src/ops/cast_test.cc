// SPDX-License-Identifier: Apache-2.0
// CAST, QUANTIZE and DEQUANTIZE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

template <typename To, typename From>
std::vector<To> cast(OperandType from, OperandType to, std::vector<From> values) {
  OperationBuilder builder(OperationType::kCast);
  const auto operand = [](OperandType type, Dimensions dimensions) {
    return OperationBuilder::tensor(type, std::move(dimensions),
                                    graph::isQuantized(type) ? 0.5f : 0.0f);
  };
  const uint32_t count = static_cast<uint32_t>(values.size());
  builder.input(operand(from, {count}), std::move(values)).output(operand(to, {}));
  const Status status = builder.run();
  EXPECT_TRUE(status);
  return builder.result<To>();
}

TEST(CastTest, RealNumbersAreCutAndSaturate) {
  const std::vector<float> values = {1.9f, -1.9f, NAN, INFINITY, -INFINITY, 3e9f};
  EXPECT_THAT((cast<int32_t>(kFloat, kInt32, values)),
              ElementsAre(1, -1, 0, INT32_MAX, INT32_MIN, INT32_MAX));
  EXPECT_THAT((cast<uint8_t>(kFloat, kUint8, values)), ElementsAre(1, 0, 0, 255, 0, 255));
  EXPECT_THAT((cast<int64_t>(kFloat, kInt64, std::vector<float>{-2.5f, 1e30f, -1e30f})),
              ElementsAre(-2, INT64_MAX, INT64_MIN));
}

TEST(CastTest, IntegersWrapExceptIntoUint8) {
  const std::vector<int64_t> values = {1, -1, (int64_t{1} << 32) + 5};
  EXPECT_THAT((cast<int32_t>(kInt64, kInt32, values)), ElementsAre(1, -1, 5));
  EXPECT_THAT((cast<uint8_t>(kInt32, kUint8, std::vector<int32_t>{-1, 7, 256})),
              ElementsAre(0, 7, 255));
}

TEST(CastTest, TruthIsAnythingButZero) {
  EXPECT_THAT((cast<uint8_t>(kFloat, OperandType::kTensorBool8, std::vector<float>{0, -0.5f, NAN})),
              ElementsAre(0, 1, 1));
  EXPECT_THAT((cast<Half>(kInt32, OperandType::kTensorFloat16, std::vector<int32_t>{3, -2})),
              ElementsAre(Half(3), Half(-2)));
}

template <typename T>
std::vector<T> quantizeTo(OperandType type, float scale, int32_t zeroPoint,
                          std::vector<float> values) {
  OperationBuilder builder(OperationType::kQuantize);
  const uint32_t count = static_cast<uint32_t>(values.size());
  builder.input({count}, std::move(values))
      .output(OperationBuilder::tensor(type, {}, scale, zeroPoint));
  EXPECT_TRUE(builder.run());
  return builder.result<T>();
}

TEST(QuantizeTest, RoundsHalvesAwayFromZeroAndSaturates) {
  const std::vector<float> values = {0.25f, -0.25f, 0.24f, 1e30f, -INFINITY, NAN};
  EXPECT_THAT(quantizeTo<int8_t>(OperandType::kTensorQuant8AsymmSigned, 0.5f, -3, values),
              ElementsAre(-2, -4, -3, 127, -128, -3));
  EXPECT_THAT(quantizeTo<uint8_t>(kUint8, 0.5f, 128, values),
              ElementsAre(129, 127, 128, 255, 0, 128));
  // The float just below a half must not be rounded up by the addition of a half.
  EXPECT_THAT(quantizeTo<uint8_t>(kUint8, 1.0f, 0, {std::nextafter(0.5f, 0.0f), 0.5f, 2.5f}),
              ElementsAre(0, 1, 3));
}

TEST(QuantizeTest, RequantizesExactly) {
  OperationBuilder builder(OperationType::kQuantize);
  builder.input(OperationBuilder::tensor(kUint8, {3}, 0.25f, 0), std::vector<uint8_t>{0, 128, 255})
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {}, 0.25f, -128));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-128, 0, 127));
}

TEST(DequantizeTest, ScalesPerChannel) {
  graph::Operand operand =
      OperationBuilder::tensor(OperandType::kTensorQuant8SymmPerChannel, {2, 2});
  operand.perChannel = {0, {0.5f, 2.0f}};
  OperationBuilder builder(OperationType::kDequantize);
  builder.input(operand, std::vector<int8_t>{1, -2, 3, -128}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(0.5f, -1.0f, 6.0f, -256.0f));
}

TEST(DequantizeTest, RefusesAQuantizedOutput) {
  OperationBuilder builder(OperationType::kDequantize);
  builder.input(OperationBuilder::tensor(kUint8, {1}, 0.25f, 0), std::vector<uint8_t>{0})
      .output(OperationBuilder::tensor(kUint8, {}, 0.25f, 0));
  EXPECT_FALSE(builder.validate());
}

}  // namespace
}  // namespace hearth::ops
