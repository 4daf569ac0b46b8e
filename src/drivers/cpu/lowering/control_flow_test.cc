// SPDX-License-Identifier: Apache-2.0
// IF and WHILE on execution graphs of their own, beside the interpreter.
#include "drivers/cpu/lowering/control_flow.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/nested_graph.h"
#include "drivers/cpu/platform/thread_pools.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

constexpr OperandType kFloat = OperandType::kTensorFloat32;
constexpr OperandType kInt = OperandType::kTensorInt32;
constexpr OperandType kBool = OperandType::kTensorBool8;
constexpr uint32_t kWidth = 37;

// The results on hearth-cpu are close to those of the reference kernels, and nothing is
// interpreted.
void expectPlanned(const graph::Model& model, const std::vector<Bytes>& inputs) {
  hal::PrepareOptions options;
  options.threads = 2;
  options.driverOptions["store_mode"] = "off";
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<graph::Model>(model), options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_EQ((*prepared)->startReport().reason.find("run time"), std::string::npos)
      << (*prepared)->startReport().reason;
  const auto both = runBoth(model, inputs);
  ASSERT_TRUE(both) << both.error().toString();
  for (size_t i = 0; i < both->made.size(); ++i) {
    ASSERT_EQ(both->made[i].size(), both->expected[i].size());
    if (model.main().operands[model.main().outputs[i]].type != kFloat) {
      EXPECT_EQ(both->made[i], both->expected[i]) << i;
      continue;
    }
    for (size_t at = 0; at < both->made[i].size(); at += sizeof(float)) {
      float made;
      float expected;
      std::memcpy(&made, &both->made[i][at], sizeof made);
      std::memcpy(&expected, &both->expected[i][at], sizeof expected);
      ASSERT_NEAR(made, expected, 1e-4f) << "output " << i << " at " << at / sizeof(float);
    }
  }
  // Again on the same model, whose contexts and buffers have been used.
  const auto once = runPrepared(model, *prepared, inputs);
  const auto twice = runPrepared(model, *prepared, inputs);
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(*once, *twice);
}

// x = tanh(x W + b), while a counter is below `steps`; W and b are constants of the body.
graph::Model layerLoop(int32_t steps, uint32_t rows = 1) {
  ModelBuilder builder;
  const uint32_t condition = builder.beginSubgraph();
  uint32_t counter = builder.input(kInt, {1});
  builder.input(kFloat, {rows, kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {steps})},
                    {builder.output(kBool, {1})});
  const uint32_t body = builder.beginSubgraph();
  counter = builder.input(kInt, {1});
  uint32_t x = builder.input(kFloat, {rows, kWidth});
  const uint32_t none = builder.scalar(0);
  builder.operation(OperationType::kAdd, {counter, builder.constant<int32_t>(kInt, {1}, {1}), none},
                    {builder.output(kInt, {1})});
  const uint32_t weights =
      builder.constant(kFloat, {kWidth, kWidth}, randomFloats(size_t{kWidth} * kWidth, 1, 0.2f));
  const uint32_t bias = builder.constant(kFloat, {kWidth}, randomFloats(kWidth, 2, 0.1f));
  const uint32_t sum = builder.temporary(kFloat, {rows, kWidth});
  builder.operation(OperationType::kFullyConnected, {x, weights, bias, none}, {sum});
  builder.operation(OperationType::kTanh, {sum}, {builder.output(kFloat, {rows, kWidth})});
  builder.returnToMain();
  counter = builder.input(kInt, {1});
  x = builder.input(kFloat, {rows, kWidth});
  builder.operation(OperationType::kWhile,
                    {builder.subgraphOperand(condition), builder.subgraphOperand(body), counter, x},
                    {builder.output(kInt, {1}), builder.output(kFloat, {rows, kWidth})});
  return builder.model();
}

TEST(ControlFlowTest, ALoopOverALayerHasPackedWeightsAndItsStateInPlace) {
  for (const int32_t steps : {0, 1, 2, 7})
    for (const int32_t first : {0, 1}) {
      SCOPED_TRACE(steps);
      expectPlanned(layerLoop(steps),
                    {bytesOf(std::vector<int32_t>{first}), bytesOf(randomFloats(kWidth, 3))});
    }
  expectPlanned(layerLoop(5, 6),
                {bytesOf(std::vector<int32_t>{0}), bytesOf(randomFloats(6 * kWidth, 4))});
}

TEST(ControlFlowTest, WeightsOfALoopArePackedOnce) {
  hal::PrepareOptions options;
  options.driverOptions["store_mode"] = "off";
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<graph::Model>(layerLoop(3)), options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const hal::StartReport report = (*prepared)->startReport();
  ASSERT_TRUE(report.packedBytes.contains("FULLY_CONNECTED"));
  EXPECT_GE(report.packedBytes.at("FULLY_CONNECTED"), kWidth * kWidth * sizeof(float));
  EXPECT_LT(report.packedBytes.at("FULLY_CONNECTED"),
            2 * (kWidth + 16) * (kWidth + 16) * sizeof(float));
}

// The run of a branch is part of the run around it, which has all threads of the pool.
TEST(ControlFlowTest, BranchesRunOnAllThreads) {
  const uint32_t size = 1 << 18;
  ModelBuilder builder;
  uint32_t branches[2];
  for (uint32_t& branch : branches) {
    branch = builder.beginSubgraph();
    const uint32_t in = builder.input(kFloat, {size});
    builder.operation(OperationType::kFloor, {in}, {builder.output(kFloat, {size})});
  }
  builder.returnToMain();
  const uint32_t condition = builder.input(kBool, {1});
  const uint32_t in = builder.input(kFloat, {size});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branches[0]), builder.subgraphOperand(branches[1]), in},
      {builder.output(kFloat, {size})});
  const graph::Model model = builder.model();
  hal::PrepareOptions options;
  options.threads = 2;
  options.driverOptions["store_mode"] = "off";
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<graph::Model>(model), options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto pool = sharedThreadPool(2);
  ASSERT_TRUE(pool);
  const threads::ThreadPool::Counters before = (*pool)->counters();
  ASSERT_TRUE(runPrepared(model, *prepared, {{1}, bytesOf(randomFloats(size, 5))}));
  EXPECT_GT((*pool)->counters().calls, before.calls);
  EXPECT_EQ((*pool)->counters().serialCalls, before.serialCalls);
}

// y = x W + b if a condition holds, else c; W, b and c are passed to the branches.
graph::Model branchesWithPassedConstants() {
  ModelBuilder builder;
  struct Inputs {
    uint32_t x, weights, bias, other;
  };
  const auto inputs = [&] {
    Inputs made{};
    made.x = builder.input(kFloat, {1, kWidth});
    made.weights = builder.input(kFloat, {kWidth, kWidth});
    made.bias = builder.input(kFloat, {kWidth});
    made.other = builder.input(kFloat, {1, kWidth});
    return made;
  };
  const uint32_t layer = builder.beginSubgraph();
  const Inputs own = inputs();
  builder.operation(OperationType::kFullyConnected,
                    {own.x, own.weights, own.bias, builder.scalar(0)},
                    {builder.output(kFloat, {1, kWidth})});
  const uint32_t sum = builder.beginSubgraph();
  const Inputs added = inputs();
  builder.operation(OperationType::kAdd, {added.x, added.other, builder.scalar(0)},
                    {builder.output(kFloat, {1, kWidth})});
  builder.returnToMain();
  const uint32_t condition = builder.input(kBool, {1});
  const uint32_t x = builder.input(kFloat, {1, kWidth});
  const uint32_t weights =
      builder.constant(kFloat, {kWidth, kWidth}, randomFloats(size_t{kWidth} * kWidth, 1, 0.2f));
  const uint32_t bias = builder.constant(kFloat, {kWidth}, randomFloats(kWidth, 2, 0.1f));
  const uint32_t other = builder.constant(kFloat, {1, kWidth}, randomFloats(kWidth, 3));
  builder.operation(OperationType::kIf,
                    {condition, builder.subgraphOperand(layer), builder.subgraphOperand(sum), x,
                     weights, bias, other},
                    {builder.output(kFloat, {1, kWidth})});
  return builder.model();
}

TEST(ControlFlowTest, ConstantsThatAreGivenToBranchesAreConstantsThere) {
  const graph::Model model = branchesWithPassedConstants();
  for (const uint8_t condition : {0, 1})
    expectPlanned(model, {Bytes{condition}, bytesOf(randomFloats(kWidth, 4))});
  hal::PrepareOptions options;
  options.driverOptions["store_mode"] = "off";
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<graph::Model>(model), options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_TRUE((*prepared)->startReport().packedBytes.contains("FULLY_CONNECTED"));
}

TEST(ControlFlowTest, TheLimitOfActivationsHoldsInBranches) {
  ModelBuilder builder;
  const uint32_t branch = builder.beginSubgraph();
  const uint32_t row = builder.input(kFloat, {1, kWidth});
  const uint32_t times = builder.constant<int32_t>(kInt, {2}, {4096, 1});
  const uint32_t wide = builder.temporary(kFloat, {4096, kWidth});
  builder.operation(OperationType::kTile, {row, times}, {wide});
  const uint32_t axes = builder.constant<int32_t>(kInt, {1}, {0});
  builder.operation(OperationType::kReduceMax, {wide, axes, builder.scalar(true)},
                    {builder.output(kFloat, {1, kWidth})});
  builder.returnToMain();
  const uint32_t condition = builder.input(kBool, {1});
  const uint32_t in = builder.input(kFloat, {1, kWidth});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(branch), builder.subgraphOperand(branch), in},
      {builder.output(kFloat, {1, kWidth})});
  const auto model = std::make_shared<graph::Model>(builder.model());
  hal::PrepareOptions options;
  options.driverOptions["store_mode"] = "off";
  const uint64_t needed = uint64_t{4096} * kWidth * sizeof(float);
  options.maxActivationBytes = 2 * needed;
  EXPECT_TRUE(createCpuDevice()->prepareModel(model, options, {}));
  options.maxActivationBytes = needed / 2;
  const auto refused = createCpuDevice()->prepareModel(model, options, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory) << refused.error().toString();
}

// (a, b) = (b, a) and a third state that stays, while a counter is below `steps`.
graph::Model swapLoop(int32_t steps) {
  ModelBuilder builder;
  const uint32_t condition = builder.beginSubgraph();
  const uint32_t counter = builder.input(kInt, {1});
  for (int i = 0; i < 3; ++i) builder.input(kFloat, {kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {steps})},
                    {builder.output(kBool, {1})});
  const uint32_t body = builder.beginSubgraph();
  const uint32_t before = builder.input(kInt, {1});
  const uint32_t a = builder.input(kFloat, {kWidth});
  const uint32_t b = builder.input(kFloat, {kWidth});
  const uint32_t c = builder.input(kFloat, {kWidth});
  const uint32_t none = builder.scalar(0);
  builder.operation(OperationType::kAdd, {before, builder.constant<int32_t>(kInt, {1}, {1}), none},
                    {builder.output(kInt, {1})});
  const uint32_t shape = builder.constant<int32_t>(kInt, {1}, {kWidth});
  builder.operation(OperationType::kReshape, {b, shape}, {builder.output(kFloat, {kWidth})});
  builder.operation(OperationType::kReshape, {a, shape}, {builder.output(kFloat, {kWidth})});
  builder.operation(OperationType::kReshape, {c, shape}, {builder.output(kFloat, {kWidth})});
  builder.returnToMain();
  std::vector<uint32_t> inputs = {builder.subgraphOperand(condition), builder.subgraphOperand(body),
                                  builder.input(kInt, {1})};
  std::vector<uint32_t> outputs = {builder.output(kInt, {1})};
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(builder.input(kFloat, {kWidth}));
    outputs.push_back(builder.output(kFloat, {kWidth}));
  }
  builder.operation(OperationType::kWhile, inputs, outputs);
  return builder.model();
}

TEST(ControlFlowTest, StatesMayTakeEachOthersPlaces) {
  for (const int32_t steps : {0, 1, 2, 3, 6})
    expectPlanned(swapLoop(steps),
                  {bytesOf(std::vector<int32_t>{0}), bytesOf(randomFloats(kWidth, 5)),
                   bytesOf(randomFloats(kWidth, 6)), bytesOf(randomFloats(kWidth, 7))});
}

// rows[counter] = tanh(from[counter]), while a counter is below `steps`; of four rows, from six.
graph::Model rowLoop(int32_t steps) {
  constexpr uint32_t kRows = 4;
  constexpr uint32_t kGiven = 6;
  ModelBuilder builder;
  const uint32_t condition = builder.beginSubgraph();
  uint32_t counter = builder.input(kInt, {1});
  builder.input(kFloat, {kRows, kWidth});
  builder.input(kFloat, {kGiven, kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {steps})},
                    {builder.output(kBool, {1})});
  const uint32_t body = builder.beginSubgraph();
  counter = builder.input(kInt, {1});
  uint32_t rows = builder.input(kFloat, {kRows, kWidth});
  uint32_t from = builder.input(kFloat, {kGiven, kWidth});
  const uint32_t none = builder.scalar(0);
  const uint32_t given = builder.temporary(kFloat, {1, kWidth});
  builder.operation(OperationType::kGather, {from, none, counter}, {given});
  const uint32_t row = builder.temporary(kFloat, {1, kWidth});
  builder.operation(OperationType::kTanh, {given}, {row});
  const uint32_t begin = builder.temporary(kInt, {2});
  builder.operation(OperationType::kConcatenation,
                    {counter, builder.constant<int32_t>(kInt, {1}, {0}), none}, {begin});
  builder.operation(OperationType::kAdd, {counter, builder.constant<int32_t>(kInt, {1}, {1}), none},
                    {builder.output(kInt, {1})});
  builder.operation(OperationType::kDynamicUpdateSlice, {rows, row, begin, builder.scalar(true)},
                    {builder.output(kFloat, {kRows, kWidth})});
  builder.operation(OperationType::kReshape,
                    {from, builder.constant<int32_t>(kInt, {2}, {kGiven, kWidth})},
                    {builder.output(kFloat, {kGiven, kWidth})});
  builder.returnToMain();
  counter = builder.input(kInt, {1});
  rows = builder.input(kFloat, {kRows, kWidth});
  from = builder.input(kFloat, {kGiven, kWidth});
  builder.operation(
      OperationType::kWhile,
      {builder.subgraphOperand(condition), builder.subgraphOperand(body), counter, rows, from},
      {builder.output(kInt, {1}), builder.output(kFloat, {kRows, kWidth})});
  return builder.model();
}

// The layers of Keras that give all steps: each step writes its row of a state of the loop, and
// hands the inputs on.
TEST(ControlFlowTest, RowsOfAState) {
  const Bytes rows = bytesOf(randomFloats(4 * kWidth, 11));
  const Bytes from = bytesOf(randomFloats(6 * kWidth, 12));
  for (const int32_t steps : {0, 1, 2, 4})
    for (const int32_t first : {0, 1})
      expectPlanned(rowLoop(steps), {bytesOf(std::vector<int32_t>{first}), rows, from});
  hal::PrepareOptions options;
  options.driverOptions["store_mode"] = "off";
  const auto model = std::make_shared<graph::Model>(rowLoop(5));
  const auto prepared = createCpuDevice()->prepareModel(model, options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto beyond =
      runPrepared(*model, *prepared, {bytesOf(std::vector<int32_t>{3}), rows, from});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), ErrorCode::kBadData) << beyond.error().toString();
}

TEST(ControlFlowTest, RowsAreWrittenInPlaceAndWhatIsHandedOnStays) {
  const graph::Model model = rowLoop(4);
  constexpr uint32_t kBody = 2;
  PackedWeights weights;
  const auto body = NestedGraph::create(model, {.index = kBody, .inputs = {}}, &weights);
  ASSERT_TRUE(body) << body.error().toString();
  const auto context = (*body)->makeContext(nullptr);
  ASSERT_TRUE(context) << context.error().toString();
  EXPECT_TRUE((*context)->mayOverwrite(1, 1));
  EXPECT_TRUE((*context)->mayOverwrite(2, 2));
  EXPECT_FALSE((*context)->mayOverwrite(2, 1));
}

// while (counter < 4) { if (counter < 2) x = x + 1 else x = x * x; ++counter }
TEST(ControlFlowTest, BranchesInLoops) {
  ModelBuilder builder;
  uint32_t branches[2];
  for (int i = 0; i < 2; ++i) {
    branches[i] = builder.beginSubgraph();
    const uint32_t x = builder.input(kFloat, {kWidth});
    const uint32_t other = i == 0 ? builder.constant<float>(kFloat, {1}, {1.0f}) : x;
    builder.operation(i == 0 ? OperationType::kAdd : OperationType::kMul,
                      {x, other, builder.scalar(0)}, {builder.output(kFloat, {kWidth})});
  }
  const uint32_t condition = builder.beginSubgraph();
  uint32_t counter = builder.input(kInt, {1});
  builder.input(kFloat, {kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {4})},
                    {builder.output(kBool, {1})});
  const uint32_t body = builder.beginSubgraph();
  counter = builder.input(kInt, {1});
  uint32_t x = builder.input(kFloat, {kWidth});
  builder.operation(OperationType::kAdd,
                    {counter, builder.constant<int32_t>(kInt, {1}, {1}), builder.scalar(0)},
                    {builder.output(kInt, {1})});
  const uint32_t isEarly = builder.temporary(kBool, {1});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {2})},
                    {isEarly});
  builder.operation(
      OperationType::kIf,
      {isEarly, builder.subgraphOperand(branches[0]), builder.subgraphOperand(branches[1]), x},
      {builder.output(kFloat, {kWidth})});
  builder.returnToMain();
  counter = builder.input(kInt, {1});
  x = builder.input(kFloat, {kWidth});
  builder.operation(OperationType::kWhile,
                    {builder.subgraphOperand(condition), builder.subgraphOperand(body), counter, x},
                    {builder.output(kInt, {1}), builder.output(kFloat, {kWidth})});
  expectPlanned(builder.model(),
                {bytesOf(std::vector<int32_t>{0}), bytesOf(randomFloats(kWidth, 10))});
}

TEST(ControlFlowTest, ConstantsAndBranchesOfTheMainGraphArePassedOn) {
  // out = condition ? constant + in : in.
  ModelBuilder builder;
  uint32_t branches[2];
  for (int i = 0; i < 2; ++i) {
    branches[i] = builder.beginSubgraph();
    const uint32_t constant = builder.input(kFloat, {kWidth});
    const uint32_t in = builder.input(kFloat, {kWidth});
    const uint32_t none = builder.scalar(0);
    builder.operation(i == 0 ? OperationType::kAdd : OperationType::kSub,
                      {i == 0 ? constant : in, i == 0 ? in : constant, none},
                      {builder.output(kFloat, {kWidth})});
  }
  builder.returnToMain();
  const uint32_t condition = builder.input(kBool, {1});
  const uint32_t in = builder.input(kFloat, {kWidth});
  const uint32_t constant = builder.constant(kFloat, {kWidth}, randomFloats(kWidth, 9));
  const uint32_t chosen = builder.temporary(kFloat, {kWidth});
  builder.operation(OperationType::kIf,
                    {condition, builder.subgraphOperand(branches[0]),
                     builder.subgraphOperand(branches[1]), constant, in},
                    {chosen});
  builder.operation(OperationType::kMul, {chosen, in, builder.scalar(0)},
                    {builder.output(kFloat, {kWidth})});
  for (const uint8_t value : {uint8_t{0}, uint8_t{1}})
    expectPlanned(builder.model(), {Bytes{value}, bytesOf(randomFloats(kWidth, 8))});
}

// A chain of subgraphs, each of which refers to the next one twice.
TEST(ControlFlowTest, NestingWithoutBoundsIsLeftToTheInterpreter) {
  ModelBuilder builder;
  uint32_t next = builder.beginSubgraph();
  {
    builder.input(kBool, {1});
    const uint32_t x = builder.input(kFloat, {2});
    builder.operation(OperationType::kAdd, {x, x, builder.scalar(0)},
                      {builder.output(kFloat, {2})});
  }
  for (int depth = 0; depth < 30; ++depth) {
    const bool isMain = depth == 29;
    uint32_t made = 0;
    if (isMain)
      builder.returnToMain();
    else
      made = builder.beginSubgraph();
    const uint32_t condition = builder.input(kBool, {1});
    const uint32_t x = builder.input(kFloat, {2});
    builder.operation(
        OperationType::kIf,
        {condition, builder.subgraphOperand(next), builder.subgraphOperand(next), condition, x},
        {builder.output(kFloat, {2})});
    next = made;
  }
  const auto both = runBoth(builder.model(), {Bytes{1}, bytesOf(randomFloats(2, 1))});
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made, both->expected);
}

}  // namespace
}  // namespace hearth::cpu
