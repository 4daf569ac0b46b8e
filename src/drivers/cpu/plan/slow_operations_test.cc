// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/slow_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

using ::testing::HasSubstr;

// A sum of `type`, then one of float32.
graph::Model twoSums(OperandType type) {
  ModelBuilder builder;
  const uint32_t none = builder.scalar(0);
  const uint32_t a = builder.input(type, {2, 3});
  builder.operation(OperationType::kAdd, {a, a, none}, {builder.output(type, {2, 3})});
  const uint32_t b = builder.input(kFloat, {4});
  builder.operation(OperationType::kAdd, {b, b, none}, {builder.output(kFloat, {4})});
  return builder.model();
}

std::string described(const graph::Model& model, const std::set<uint32_t>& refused) {
  EXPECT_TRUE(initializeXnnpack());
  PackedWeights weights;
  PlanBuilder builder(model, &weights, refused);
  const Status built = builder.build();
  EXPECT_TRUE(built) << built.error().toString();
  return describeSlowOperations(model, builder.takePlan());
}

TEST(SlowOperationsTest, FastKernelsAreNotNamed) {
  EXPECT_EQ(described(twoSums(kFloat), {}), "");
}

TEST(SlowOperationsTest, SlowOnesAreNamedWithTheirTypes) {
  const std::string text = described(twoSums(OperandType::kTensorFloat16), {});
  EXPECT_THAT(text, HasSubstr("1 of 2 operations"));
  EXPECT_THAT(text, HasSubstr("ADD 0 (TENSOR_FLOAT16[2,3], TENSOR_FLOAT16[2,3]: float16 has no "
                              "faster kernel)"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("FLOAT32")));
}

TEST(SlowOperationsTest, WhatXnnpackRefusesIsSaid) {
  EXPECT_THAT(described(twoSums(kFloat), {1}), HasSubstr("ADD 1 (TENSOR_FLOAT32[4], "
                                                         "TENSOR_FLOAT32[4]: XNNPACK refuses it)"));
}

// Each lowering says itself which of its conditions is not met.
TEST(SlowOperationsTest, TheReasonIsThatOfTheLowering) {
  constexpr auto kByte = OperandType::kTensorQuant8AsymmSigned;
  ModelBuilder pooling;
  const uint32_t in = pooling.input(kByte, {1, 4, 4, 2}, 0.5f, 0);
  const uint32_t one = pooling.scalar(1);
  const uint32_t none = pooling.scalar(0);
  pooling.operation(OperationType::kMaxPool2d,
                    {in, none, none, none, none, one, one, one, one, none},
                    {pooling.output(kByte, {1, 4, 4, 2}, 0.5f, 0)});
  EXPECT_THAT(described(pooling.model(), {}),
              HasSubstr(": XNNPACK does not pool windows of one place)"));
  ModelBuilder layer;
  const uint32_t rows = layer.input(kByte, {1, 2}, 16.0f, 0);
  const uint32_t weights = layer.constant<int8_t>(kByte, {3, 2}, {1, 2, 3, 4, 5, 6}, 16.0f, 0);
  const uint32_t bias =
      layer.constant<int32_t>(OperandType::kTensorInt32, {3}, {0, 0, 0}, 256.0f, 0);
  layer.operation(OperationType::kFullyConnected, {rows, weights, bias, layer.scalar(0)},
                  {layer.output(kByte, {1, 3}, 0.5f, 0)});
  EXPECT_THAT(described(layer.model(), {}), HasSubstr("scales are 256 times its output's)"));
}

}  // namespace
}  // namespace hearth::cpu
