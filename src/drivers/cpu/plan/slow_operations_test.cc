// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/slow_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/log_sink.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Adds CHANNEL_SHUFFLE, for which there is no faster kernel.
void addShuffle(ModelBuilder* builder, uint32_t channels) {
  builder->operation(
      OperationType::kChannelShuffle,
      {builder->input(kFloat, {2, channels}), builder->scalar(2), builder->scalar(1)},
      {builder->output(kFloat, {2, channels})});
}

// An operation on a slow kernel, or a sum, and a sum behind it.
graph::Model beforeASum(bool isSlow) {
  ModelBuilder builder;
  const uint32_t none = builder.scalar(0);
  if (isSlow) {
    addShuffle(&builder, 3000);
  } else {
    const uint32_t a = builder.input(kFloat, {2, 3000});
    builder.operation(OperationType::kAdd, {a, a, none}, {builder.output(kFloat, {2, 3000})});
  }
  const uint32_t b = builder.input(kFloat, {4000});
  builder.operation(OperationType::kAdd, {b, b, none}, {builder.output(kFloat, {4000})});
  return builder.model();
}

std::vector<std::string> slowOf(const graph::Model& model, const std::set<uint32_t>& refused = {}) {
  EXPECT_TRUE(initializeXnnpack());
  PackedWeights weights;
  PlanBuilder builder(model, &weights, refused);
  const Status built = builder.build();
  EXPECT_TRUE(built) << built.error().toString();
  return slowOperations(model, builder.takePlan());
}

TEST(SlowOperationsTest, FastKernelsAreNotNamed) {
  EXPECT_THAT(slowOf(beforeASum(false)), IsEmpty());
}

TEST(SlowOperationsTest, SmallOnesAreNotNamed) {
  ModelBuilder builder;
  addShuffle(&builder, 8);
  EXPECT_THAT(slowOf(builder.model()), IsEmpty());
}

TEST(SlowOperationsTest, SlowOnesAreNamedWithTheirTypes) {
  EXPECT_THAT(slowOf(beforeASum(true)),
              ElementsAre("CHANNEL_SHUFFLE 0 (TENSOR_FLOAT32 and INT32): there is no faster kernel "
                          "for this operation"));
}

TEST(SlowOperationsTest, WhatXnnpackRefusesIsSaid) {
  EXPECT_THAT(slowOf(beforeASum(false), {1}),
              ElementsAre("ADD 1 (TENSOR_FLOAT32 and TENSOR_FLOAT32): XNNPACK refuses it"));
}

TEST(SlowOperationsTest, TheLogWarnsOfEachOnce) {
  std::string text;
  base::setLogLevel(base::LogLevel::kWarn);
  base::setLogSink([&](base::LogLevel, const char* message) { text = message; });
  warnOfSlowOperations({});
  EXPECT_EQ(text, "");
  warnOfSlowOperations({"ADD \"a\": it is a test", "MUL \"b\": it is a test"});
  EXPECT_EQ(text,
            "2 of a model's operations run on a slow kernel. ADD \"a\": it is a test; MUL \"b\": "
            "it is a test.");
  warnOfSlowOperations({"MUL \"b\": it is a test", "SUB \"c\": it is a test"});
  EXPECT_EQ(text, "1 of a model's operations runs on a slow kernel. SUB \"c\": it is a test.");
  text.clear();
  warnOfSlowOperations({"SUB \"c\": it is a test"});
  EXPECT_EQ(text, "");
  base::setLogSink(nullptr);
  base::setLogLevelFromEnvironment();
}

// Beside another start of the same model, too.
TEST(SlowOperationsTest, StartReportsNameThem) {
  const auto device = createCpuDevice();
  const auto model = std::make_shared<const graph::Model>(beforeASum(true));
  const auto prepared = device->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto slow =
      ElementsAre(testing::HasSubstr("CHANNEL_SHUFFLE 0 (TENSOR_FLOAT32 and INT32): "));
  EXPECT_THAT((*prepared)->startReport().slowOperations, slow);
  const auto again = device->prepareModel(model, {}, {});
  ASSERT_TRUE(again) << again.error().toString();
  EXPECT_THAT((*again)->startReport().slowOperations, slow);
}

TEST(SlowOperationsTest, StartReportsNameAHundredAtMost) {
  ModelBuilder builder;
  for (int i = 0; i < 120; ++i) addShuffle(&builder, 3000);
  EXPECT_EQ(slowOf(builder.model()).size(), 120u);
  const auto prepared = createCpuDevice()->prepareModel(
      std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_EQ((*prepared)->startReport().slowOperations.size(), 100u);
}

// A model with one operation of `in`, and why its kernel is slow.
std::string reasonOf(OperationType type, const ModelBuilder& builder) {
  const std::vector<std::string> lines = slowOf(builder.model());
  EXPECT_EQ(lines.size(), 1u) << graph::nameOf(type);
  return lines.empty() ? "" : lines[0].substr(lines[0].find("): ") + 3);
}

// Each lowering says itself which of its conditions is not met.
TEST(SlowOperationsTest, TheReasonIsThatOfTheLowering) {
  constexpr auto kByte = OperandType::kTensorQuant8AsymmSigned;
  ModelBuilder pooling;
  const uint32_t in = pooling.input(kByte, {1, 40, 40, 2}, 0.5f, 0);
  const uint32_t one = pooling.scalar(1);
  const uint32_t none = pooling.scalar(0);
  pooling.operation(OperationType::kMaxPool2d,
                    {in, none, none, none, none, one, one, one, one, none},
                    {pooling.output(kByte, {1, 40, 40, 2}, 0.5f, 0)});
  EXPECT_EQ(reasonOf(OperationType::kMaxPool2d, pooling),
            "XNNPACK does not pool windows of one place");
  ModelBuilder layer;
  const uint32_t rows = layer.input(kByte, {2000, 2}, 16.0f, 0);
  const uint32_t weights = layer.constant<int8_t>(kByte, {3, 2}, {1, 2, 3, 4, 5, 6}, 16.0f, 0);
  const uint32_t bias =
      layer.constant<int32_t>(OperandType::kTensorInt32, {3}, {0, 0, 0}, 256.0f, 0);
  layer.operation(OperationType::kFullyConnected, {rows, weights, bias, layer.scalar(0)},
                  {layer.output(kByte, {2000, 3}, 0.5f, 0)});
  EXPECT_EQ(reasonOf(OperationType::kFullyConnected, layer),
            "its input's and weights' scales are 256 times its output's");
  ModelBuilder joined;
  joined.operation(
      OperationType::kConcatenation,
      {joined.input(OperandType::kTensorQuant16Symm, {1, 4000}, 0.5f, 0),
       joined.input(OperandType::kTensorQuant16Symm, {1, 4000}, 0.25f, 0), joined.scalar(1)},
      {joined.output(OperandType::kTensorQuant16Symm, {1, 8000}, 0.5f, 0)});
  EXPECT_EQ(reasonOf(OperationType::kConcatenation, joined),
            "an input has another type or scale than its output");
  ModelBuilder softmax;
  softmax.operation(OperationType::kSoftmax,
                    {softmax.input(kFloat, {1, 4000}),
                     softmax.constant<float>(OperandType::kFloat32, {}, {2.0f})},
                    {softmax.output(kFloat, {1, 4000})});
  EXPECT_EQ(reasonOf(OperationType::kSoftmax, softmax), "its beta is not 1");
  ModelBuilder compared;
  compared.operation(
      OperationType::kLess,
      {compared.input(kByte, {1, 4000}, 0.5f, 0), compared.input(kByte, {1, 4000}, 0.25f, 0)},
      {compared.output(OperandType::kTensorBool8, {1, 4000})});
  EXPECT_EQ(reasonOf(OperationType::kLess, compared),
            "its inputs have different scales or zero points");
}

}  // namespace
}  // namespace hearth::cpu
