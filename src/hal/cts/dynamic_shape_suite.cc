// SPDX-License-Identifier: Apache-2.0
// Models whose dimensions become known only at run time.
#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

class HalDynamicShape : public DeviceFixture {};
HEARTH_CTS_SUITE(HalDynamicShape);

TEST_P(HalDynamicShape, UnknownOutputIsReported) {
  for (const graph::Dimensions& declared :
       {graph::Dimensions{0, 0}, graph::Dimensions{0, 3}, graph::Dimensions{}}) {
    HEARTH_CTS_PREPARE(prepared, addModel({2, 3}, {2, 3}, declared));
    std::vector<float> a(6, 1.0f), b(6, 2.0f), out(10, -1.0f);
    const ExecutionResult result =
        computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    ASSERT_EQ(result.outputShapes.size(), 1u);
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({2, 3}));
    EXPECT_TRUE(result.outputShapes[0].isSufficient);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(out[i], i < 6 ? 3.0f : -1.0f) << i;
  }
}

TEST_P(HalDynamicShape, RequestsOfSeveralSizesOnOneModel) {
  HEARTH_CTS_PREPARE(prepared, addModel({0, 3}, {0, 3}, {0, 3}));
  for (uint32_t rows : {1u, 7u, 2u, 100u}) {
    std::vector<float> a(rows * 3, 1.0f), b(rows * 3, 2.0f), out(rows * 3, -1.0f);
    const ExecutionResult result = computeOnce(
        *prepared, {{argumentFor(a, {rows, 3}), argumentFor(b, {rows, 3})}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({rows, 3}));
    EXPECT_EQ(out, std::vector<float>(rows * 3, 3.0f));
  }
}

TEST_P(HalDynamicShape, UnknownRank) {
  HEARTH_CTS_PREPARE(prepared, addModel({}, {}, {}));
  std::vector<float> a(6, 1.0f), b(6, 2.0f), out(6, -1.0f);
  const ExecutionResult result = computeOnce(
      *prepared, {{argumentFor(a, {1, 2, 3}), argumentFor(b, {1, 2, 3})}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({1, 2, 3}));
  EXPECT_EQ(out, std::vector<float>(6, 3.0f));
}

TEST_P(HalDynamicShape, InputWithoutDimensionsIsRefused) {
  HEARTH_CTS_PREPARE(prepared, addModel({0, 3}, {0, 3}, {0, 3}));
  std::vector<float> a(6), b(6), out(6);
  for (const graph::Dimensions& given :
       {graph::Dimensions{}, graph::Dimensions{0, 3}, graph::Dimensions{2, 4}}) {
    const ExecutionResult result = computeOnce(
        *prepared, {{argumentFor(a, given), argumentFor(b, {2, 3})}, {argumentFor(out)}});
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kBadData);
  }
}

TEST_P(HalDynamicShape, ShapesThatDoNotGoTogetherAreAnError) {
  HEARTH_CTS_PREPARE(prepared, addModel({0, 3}, {0, 3}, {0, 3}));
  std::vector<float> a(6), b(9), out(9);
  const ExecutionResult result = computeOnce(
      *prepared, {{argumentFor(a, {2, 3}), argumentFor(b, {3, 3})}, {argumentFor(out)}});
  EXPECT_FALSE(result.status);
}

TEST_P(HalDynamicShape, TooSmallOutputReportsTheShapeAndIsNotOverrun) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}, {2, 3}, {0, 0}));
  std::vector<float> a(6, 1.0f), b(6, 2.0f), out(10, -1.0f);
  for (uint64_t length : {20, 4, 23, 1}) {
    auto execution = prepared->createExecution(
        {{argumentFor(a), argumentFor(b)}, {pointerArgument(out.data(), length)}});
    ASSERT_TRUE(execution) << execution.error().toString();
    const ExecutionResult result = (*execution)->compute({});
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kOutputInsufficientSize)
        << result.status.error().toString();
    ASSERT_EQ(result.outputShapes.size(), 1u);
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({2, 3}));
    EXPECT_FALSE(result.outputShapes[0].isSufficient);
    for (size_t i = (length + 3) / 4; i < out.size(); ++i) EXPECT_EQ(out[i], -1.0f) << i;
  }
}

TEST_P(HalDynamicShape, TooSmallOutputLeavesTheOthersShapesKnown) {
  ModelBuilder builder;
  const auto kFloat = graph::OperandType::kTensorFloat32;
  const uint32_t a = builder.input(kFloat, {2, 3});
  const uint32_t activation = builder.scalar(0);
  const uint32_t first = builder.output(kFloat, {0, 0});
  const uint32_t second = builder.output(kFloat, {0, 0});
  builder.operation(graph::OperationType::kAdd, {a, a, activation}, {first});
  builder.operation(graph::OperationType::kMul, {first, a, activation}, {second});
  HEARTH_CTS_PREPARE(prepared, builder.model());
  std::vector<float> in(6, 3.0f), small(2), large(6);
  const ExecutionResult result =
      computeOnce(*prepared, {{argumentFor(in)}, {argumentFor(small), argumentFor(large)}});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutputInsufficientSize);
  ASSERT_EQ(result.outputShapes.size(), 2u);
  EXPECT_FALSE(result.outputShapes[0].isSufficient);
  EXPECT_TRUE(result.outputShapes[1].isSufficient);
  EXPECT_EQ(result.outputShapes[1].dimensions, graph::Dimensions({2, 3}));
}

TEST_P(HalDynamicShape, UnknownTemporaries) {
  graph::Model model = chainModel({2, 3});
  for (graph::Operand& operand : model.main().operands)
    if (operand.lifetime == graph::Lifetime::kTemporary) operand.dimensions = {};
  HEARTH_CTS_PREPARE(prepared, model);
  std::vector<float> a(6, 2.0f), b(6, 3.0f), out(6);
  const ExecutionResult result =
      computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(out, std::vector<float>(6, 7.0f));
}

TEST_P(HalDynamicShape, HugeShapesAreRefusedBeforeAllocation) {
  PrepareOptions options;
  options.maxActivationBytes = 1 << 20;
  graph::Model model = chainModel({0, 0});
  HEARTH_CTS_PREPARE(prepared, model, options);
  std::vector<float> a(1 << 20), b(1 << 20), out(1 << 20);
  const graph::Dimensions dimensions = {1024, 1024};
  const ExecutionResult result = computeOnce(
      *prepared, {{argumentFor(a, dimensions), argumentFor(b, dimensions)}, {argumentFor(out)}});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutOfMemory)
      << result.status.error().toString();
}

}  // namespace
}  // namespace hearth::hal::cts
