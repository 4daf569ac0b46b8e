// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct PoolCase {
  Dimensions input;
  int32_t padding, stride, filter, activation;
};

class QuantizedAveragePoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(QuantizedAveragePoolTest, EqualsTheReference) {
  const PoolCase& c = GetParam();
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    ModelBuilder builder;
    const int32_t zero = type == kInt8 ? -20 : 108;
    const uint32_t input = builder.input(type, c.input, 0.05f, zero);
    std::vector<uint32_t> inputs = {input};
    // The padding of each side, then strides, filter and activation.
    for (const int32_t value : {c.padding, c.padding, c.padding, c.padding, c.stride, c.stride,
                                c.filter, c.filter, c.activation})
      inputs.push_back(builder.scalar(value));
    const auto sizeOf = [&](uint32_t size) {
      return static_cast<uint32_t>(
          (static_cast<int32_t>(size) + 2 * c.padding - c.filter) / c.stride + 1);
    };
    builder.operation(
        OperationType::kAveragePool2d, inputs,
        {builder.output(type, {c.input[0], sizeOf(c.input[1]), sizeOf(c.input[2]), c.input[3]},
                        0.05f, zero)});
    EXPECT_EQ(
        differenceFromReference(builder.model(), {randomBytes(countOf(c.input), 1)}, "own", 0.0f),
        "");
    const auto compared = runBoth(builder.model(), {randomBytes(countOf(c.input), 1)});
    ASSERT_TRUE(compared) << compared.error().toString();
    EXPECT_EQ(compared->made, compared->expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, QuantizedAveragePoolTest,
    testing::Values(PoolCase{{1, 8, 8, 5}, 0, 2, 2, 0}, PoolCase{{2, 7, 9, 16}, 1, 1, 3, 0},
                    PoolCase{{1, 5, 6, 33}, 2, 2, 3, 1}, PoolCase{{1, 30, 30, 70}, 3, 3, 7, 3},
                    PoolCase{{3, 2, 2, 1}, 1, 1, 2, 2}, PoolCase{{1, 14, 15, 40}, 0, 1, 11, 0},
                    PoolCase{{1, 14, 15, 40}, 1, 1, 12, 0}, PoolCase{{2, 7, 7, 40}, 0, 1, 7, 0},
                    PoolCase{{1, 20, 20, 33}, 0, 1, 20, 0}));

// XNNPACK goes through such a window several times, and reads its results in between.
TEST(MaxPoolTest, OfAWindowOfManyPlacesStaysInItsOutput) {
  for (const OperandType type : {kInt8, kUint8, kFloat}) {
    const float scale = type == kFloat ? 0.0f : 0.1f;
    ModelBuilder builder;
    const Dimensions shape = {2, 5, 9, 8};
    const uint32_t input = builder.input(type, shape, scale);
    const uint32_t output = builder.output(type, {2, 1, 1, 8}, scale);
    builder.operation(OperationType::kMaxPool2d,
                      {input, builder.scalar(2), builder.scalar(1), builder.scalar(1),
                       builder.scalar(9), builder.scalar(5), builder.scalar(0)},
                      {output});
    const Bytes values = type == kFloat ? floatsFor(shape, 1) : randomBytes(countOf(shape), 1);
    EXPECT_EQ(differenceFromReference(builder.model(), {values}, "xnnpack", 0.0f), "");
  }
}

// XNNPACK has no pooling over one place.
TEST(MaxPoolTest, OfWindowsOfOnePlaceAndOfOneColumn) {
  for (const int32_t height : {1, 3}) {
    ModelBuilder builder;
    const Dimensions shape = {2, 7, 5, 9};
    const uint32_t input = builder.input(kFloat, shape);
    const uint32_t one = builder.scalar(1);
    builder.operation(
        OperationType::kMaxPool2d,
        {input, builder.scalar(2), one, one, one, builder.scalar(height), builder.scalar(0)},
        {builder.output(kFloat, {2, height == 1 ? 7u : 5u, 5, 9})});
    EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor(shape, 1)},
                                      height == 1 ? "reference" : "xnnpack", 0.0f),
              "");
  }
}

}  // namespace
}  // namespace hearth::cpu
