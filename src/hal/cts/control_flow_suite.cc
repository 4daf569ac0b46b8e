// SPDX-License-Identifier: Apache-2.0
// IF and WHILE, above all loops that do not end.
#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

using graph::OperandType;
using graph::OperationType;

constexpr OperandType kFloat = OperandType::kTensorFloat32;

class HalControlFlow : public DeviceFixture {};
HEARTH_CTS_SUITE(HalControlFlow);

// out = condition ? in + in : in * in, followed by out + in, so that the main graph has an
// operation besides IF.
graph::Model branching() {
  ModelBuilder builder;
  uint32_t branches[2];
  for (int i = 0; i < 2; ++i) {
    branches[i] = builder.beginSubgraph();
    const uint32_t in = builder.input(kFloat, {2});
    const uint32_t activation = builder.scalar(0);
    builder.operation(i == 0 ? OperationType::kAdd : OperationType::kMul, {in, in, activation},
                      {builder.output(kFloat, {2})});
  }
  builder.returnToMain();
  const uint32_t condition = builder.input(OperandType::kTensorBool8, {1});
  const uint32_t in = builder.input(kFloat, {2});
  const uint32_t chosen = builder.temporary(kFloat, {2});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branches[0]), builder.subgraphOperand(branches[1]), in},
      {chosen});
  builder.operation(OperationType::kAdd, {chosen, in, builder.scalar(0)},
                    {builder.output(kFloat, {2})});
  return builder.model();
}

// while (value < limit) value = value + step.
graph::Model looping() {
  ModelBuilder builder;
  const uint32_t condition = builder.beginSubgraph();
  uint32_t value = builder.input(kFloat, {1});
  uint32_t limit = builder.input(kFloat, {1});
  builder.input(kFloat, {1});
  builder.operation(OperationType::kLess, {value, limit},
                    {builder.output(OperandType::kTensorBool8, {1})});
  const uint32_t body = builder.beginSubgraph();
  value = builder.input(kFloat, {1});
  builder.input(kFloat, {1});
  uint32_t step = builder.input(kFloat, {1});
  builder.operation(OperationType::kAdd, {value, step, builder.scalar(0)},
                    {builder.output(kFloat, {1})});
  builder.returnToMain();
  value = builder.input(kFloat, {1});
  limit = builder.input(kFloat, {1});
  step = builder.input(kFloat, {1});
  builder.operation(
      OperationType::kWhile,
      {builder.subgraphOperand(condition), builder.subgraphOperand(body), value, limit, step},
      {builder.output(kFloat, {1})});
  return builder.model();
}

TEST_P(HalControlFlow, IfTakesTheBranchOfItsCondition) {
  HEARTH_CTS_PREPARE(prepared, branching());
  for (const bool isThen : {true, false, true}) {
    std::vector<uint8_t> condition = {isThen};
    std::vector<float> in = {3.0f, 5.0f}, out(2);
    const ExecutionResult result =
        computeOnce(*prepared, {{argumentFor(condition), argumentFor(in)}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(out, isThen ? std::vector<float>({9.0f, 15.0f}) : std::vector<float>({12.0f, 30.0f}));
  }
}

TEST_P(HalControlFlow, WhileRunsUntilItsConditionFails) {
  HEARTH_CTS_PREPARE(prepared, looping());
  for (const float limit : {5.0f, 0.0f, 100.0f}) {
    std::vector<float> value = {0.0f}, limits = {limit}, step = {1.0f}, out = {-1.0f};
    const ExecutionResult result = computeOnce(
        *prepared,
        {{argumentFor(value), argumentFor(limits), argumentFor(step)}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(out[0], limit);
  }
}

TEST_P(HalControlFlow, EndlessWhileMissesLoopTimeoutOrDeadline) {
  HEARTH_CTS_PREPARE(prepared, looping());
  std::vector<float> value = {0.0f}, limit = {1.0f}, step = {0.0f}, out = {-1.0f};
  Request request{{argumentFor(value), argumentFor(limit), argumentFor(step)}, {argumentFor(out)}};
  for (const bool isDeadline : {false, true}) {
    request.loopTimeout = isDeadline ? 3'600'000'000'000 : 20'000'000;
    const ExecutionResult result = computeOnce(
        *prepared, request, isDeadline ? base::Deadline::after(20'000'000) : base::Deadline());
    ASSERT_FALSE(result.status);
    EXPECT_TRUE(isMissedDeadline(result.status.error())) << result.status.error().toString();
  }
}

TEST_P(HalControlFlow, BranchesOfOtherSignaturesAreRefused) {
  graph::Model model = branching();
  model.subgraphs[2].operands[0].type = OperandType::kTensorInt32;
  const auto supports = device().supportedOperations(model);
  ASSERT_TRUE(supports) << supports.error().toString();
  ASSERT_EQ(supports->size(), 2u);
  EXPECT_FALSE((*supports)[0].supported);
  EXPECT_FALSE(device().prepareModel(std::make_shared<const graph::Model>(model), {}, {}));
}

}  // namespace
}  // namespace hearth::hal::cts
