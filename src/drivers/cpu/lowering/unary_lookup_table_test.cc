// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/unary_lookup_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

constexpr auto kInt16 = OperandType::kTensorQuant16Symm;

TEST(ValueTableTest, EveryByteIsLookedUp) {
  uint8_t table[256];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i * 7 + 3);
  for (const size_t count : {0u, 1u, 63u, 64u, 65u, 256u, 1000u}) {
    const Bytes source = randomBytes(count, 1);
    Bytes target(count + 1, 0xAA);
    lookUp(table, source.data(), target.data(), count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(target[i], table[source[i]]) << i;
    EXPECT_EQ(target[count], 0xAA);
  }
}

// One operation on all values of a type, some of them more than once.
std::string difference(OperationType type, OperandType in, OperandType out, size_t count,
                       const char* kernel) {
  ModelBuilder builder;
  const Dimensions dimensions = {3, static_cast<uint32_t>(count / 3)};
  const bool isUnsigned = in == kUint8;
  const uint32_t data = builder.input(in, dimensions, 1.0f / 50, isUnsigned ? 120 : 0);
  std::vector<uint32_t> inputs = {data};
  if (type == OperationType::kElu) inputs.push_back(builder.scalar(0.7f));
  if (type == OperationType::kGelu) inputs.push_back(builder.scalar(true));
  if (type == OperationType::kPrelu)
    inputs.push_back(builder.constant(in, {1}, Bytes{200}, 1.0f / 64, isUnsigned ? 7 : 0));
  const bool isReal = out == OperandType::kTensorFloat32;
  builder.operation(type, inputs,
                    {builder.output(out, dimensions, isReal ? 0.0f : 1.0f / 30,
                                    isReal || out == kInt16 ? 0 : 11)});
  const Bytes values = randomBytes(dimensions[0] * dimensions[1] * (in == kInt16 ? 2 : 1), 2);
  const std::string told = differenceFromReference(builder.model(), {values}, kernel, 0.0f);
  if (!told.empty()) return told;
  const auto compared = runBoth(builder.model(), {values});
  if (!compared) return compared.error().toString();
  return compared->made == compared->expected ? "" : "It is not exact.";
}

TEST(ValueTableTest, IsWhatTheReferenceGives) {
  for (const OperationType type :
       {OperationType::kAbs, OperationType::kElu, OperationType::kGelu, OperationType::kHardSwish,
        OperationType::kPrelu, OperationType::kNeg, OperationType::kExp, OperationType::kSin})
    for (const OperandType operand : {kUint8, kInt8})
      EXPECT_EQ(difference(type, operand, operand, 3000, "own"), "") << graph::nameOf(type);
  for (const OperationType type : {OperationType::kQuantize, OperationType::kAbs})
    EXPECT_EQ(difference(type, kInt16, kInt16, 70002, "own"), "") << graph::nameOf(type);
  EXPECT_EQ(difference(OperationType::kQuantize, kInt16, kInt8, 70002, "own"), "");
  EXPECT_EQ(difference(OperationType::kQuantize, kUint8, kInt16, 3000, "own"), "");
  EXPECT_EQ(difference(OperationType::kQuantize, kUint8, kInt8, 3000, "own"), "");
}

TEST(ValueTableTest, SmallTensorsNeedNone) {
  EXPECT_EQ(difference(OperationType::kAbs, kInt8, kInt8, 255, "reference"), "");
  EXPECT_EQ(difference(OperationType::kAbs, kInt16, kInt16, 60000, "reference"), "");
}

TEST(ValueTableTest, SlopesOfChannelsAreNoTable) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kInt8, {100, 6}, 1.0f / 50, 3);
  const uint32_t slopes = builder.constant(kInt8, {6}, Bytes{1, 2, 3, 250, 9, 100}, 1.0f / 64, 0);
  builder.operation(OperationType::kPrelu, {data, slopes},
                    {builder.output(kInt8, {100, 6}, 1.0f / 30, 1)});
  EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(600, 3)}, "reference", 0.0f), "");
}

// Numbers of one scale are compared as they are stored.
TEST(SelectingTest, QuantizedMaximaAndMinima) {
  for (const OperationType type : {OperationType::kMaximum, OperationType::kMinimum}) {
    for (const OperandType operand : {kUint8, kInt8}) {
      for (const float scale : {0.5f, 0.25f}) {
        ModelBuilder builder;
        const uint32_t a = builder.input(operand, {40, 33}, 0.5f, 9);
        const uint32_t b = builder.input(operand, {33}, scale, 9);
        builder.operation(type, {a, b}, {builder.output(operand, {40, 33}, 0.5f, 9)});
        const char* kernel = scale == 0.5f ? "own" : "reference";
        EXPECT_EQ(differenceFromReference(
                      builder.model(), {randomBytes(40 * 33, 4), randomBytes(33, 5)}, kernel, 0.0f),
                  "");
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cpu
