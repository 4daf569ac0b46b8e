// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 8-bit numbers and LOG_SOFTMAX give what the reference kernels give.
#include <gtest/gtest.h>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

TEST(LogSoftmaxTest, EqualsTheReference) {
  for (const uint32_t size : {1u, 15u, 16u, 100u, 1001u}) {
    for (const float beta : {1.0f, 0.3f}) {
      ModelBuilder builder;
      const uint32_t data = builder.input(kFloat, {9, size});
      builder.operation(OperationType::kLogSoftmax,
                        {data, builder.scalar(beta), builder.scalar(int32_t{-1})},
                        {builder.output(kFloat, {9, size})});
      EXPECT_EQ(
          differenceFromReference(builder.model(), {floatsFor({9, size}, 1, 20.0f)}, "own", 1e-6f),
          "")
          << size;
    }
  }
}

TEST(LogSoftmaxTest, BytesEqualTheReference) {
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    const int32_t highest = type == kInt8 ? 127 : 255;
    for (const uint32_t size : {1u, 5u, 64u, 1003u}) {
      for (const float scale : {0.01f, 0.1f, 1.0f}) {
        ModelBuilder builder;
        const uint32_t data = builder.input(type, {9, size}, scale, 4);
        builder.operation(OperationType::kLogSoftmax,
                          {data, builder.scalar(1.0f), builder.scalar(int32_t{-1})},
                          {builder.output(type, {9, size}, 1.0f / 16, highest)});
        EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(9 * size, 3)}, "own", 0.0f),
                  "")
            << size;
      }
    }
  }
}

TEST(QuantizedSoftmaxTest, EqualsTheReference) {
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    for (const uint32_t channels : {1u, 2u, 10u, 512u, 513u, 1000u}) {
      for (const float beta : {1.0f, 0.5f, 20.0f}) {
        ModelBuilder builder;
        const bool isSigned = type == kInt8;
        const char* const kernel = isSigned || channels > 512 ? "own" : "xnnpack";
        const uint32_t data = builder.input(type, {40, channels}, 0.1f, isSigned ? -3 : 110);
        builder.operation(OperationType::kSoftmax, {data, builder.scalar(beta)},
                          {builder.output(type, {40, channels}, 1.0f / 256, isSigned ? -128 : 0)});
        const size_t count = size_t{40} * channels;
        EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(count, 1)}, kernel, 0.0f),
                  "")
            << channels << " " << beta;
        // All numbers equal: XNNPACK's sum overflows from 513 numbers on.
        EXPECT_EQ(differenceFromReference(builder.model(), {Bytes(count, 77)}, kernel, 0.0f), "")
            << channels << " " << beta;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cpu
