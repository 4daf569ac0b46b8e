// SPDX-License-Identifier: Apache-2.0
// Layers of 8-bit numbers whose sums of products leave 32 bits keep the lower ones, on every
// kernel.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

constexpr uint32_t kUnits = 16;
constexpr float kOutputScale = 16777216.0f;  // 2 to the 24th: the upper byte of a sum

// All data are `size` times one byte, all weights another.
struct Sum {
  OperandType type;
  uint32_t size;
  uint8_t data;
  int32_t dataZero;
  uint8_t weight;
  int32_t outputZero;
  uint8_t result;
};

// 40,000 * 255 * 255 - 2^32 is -100.97 * 2^24; 70,000 * 255 * 128 - 2^32 is -119.8 * 2^24.
constexpr Sum kSums[] = {{kUint8, 40000, 255, 0, 255, 128, 128 - 101},
                         {kInt8, 70000, 0x80, 127, 0x80, 0, static_cast<uint8_t>(-120)}};

void expectLowerBits(const ModelBuilder& builder, const Sum& sum) {
  const auto compared = runBoth(builder.model(), {Bytes(sum.size, sum.data)});
  ASSERT_TRUE(compared) << compared.error().toString();
  const Bytes expected(kUnits, sum.result);
  EXPECT_EQ(compared->expected.front(), expected);
  EXPECT_EQ(compared->made.front(), expected);
}

TEST(LargeSumsTest, OfFullyConnectedLayers) {
  for (const Sum& sum : kSums) {
    ModelBuilder builder;
    const uint32_t data = builder.input(sum.type, {1, sum.size}, 1.0f, sum.dataZero);
    const uint32_t weights = builder.constant(sum.type, {kUnits, sum.size},
                                              Bytes(size_t{kUnits} * sum.size, sum.weight), 1.0f);
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {kUnits},
                                           std::vector<int32_t>(kUnits, 0), 1.0f);
    builder.operation(OperationType::kFullyConnected, {data, weights, bias, builder.scalar(0)},
                      {builder.output(sum.type, {1, kUnits}, kOutputScale, sum.outputZero)});
    expectLowerBits(builder, sum);
  }
}

void checkConvolutions(uint32_t height) {
  for (const Sum& sum : kSums) {
    ModelBuilder builder;
    const uint32_t data =
        builder.input(sum.type, {1, height, 1, sum.size / height}, 1.0f, sum.dataZero);
    const uint32_t weights = builder.constant(sum.type, {kUnits, height, 1, sum.size / height},
                                              Bytes(size_t{kUnits} * sum.size, sum.weight), 1.0f);
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {kUnits},
                                           std::vector<int32_t>(kUnits, 0), 1.0f);
    std::vector<uint32_t> inputs = {data, weights, bias};
    for (const int32_t value : {0, 0, 0, 0, 1, 1, 0}) inputs.push_back(builder.scalar(value));
    builder.operation(OperationType::kConv2d, inputs,
                      {builder.output(sum.type, {1, 1, 1, kUnits}, kOutputScale, sum.outputZero)});
    expectLowerBits(builder, sum);
  }
}

TEST(LargeSumsTest, OfConvolutions) {
  checkConvolutions(1);
}

TEST(LargeSumsTest, OfConvolutionsOverSeveralRows) {
  checkConvolutions(4);
}

}  // namespace
}  // namespace hearth::cpu
