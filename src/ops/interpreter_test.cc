// SPDX-License-Identifier: Apache-2.0
#include "ops/interpreter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace hearth::ops {
namespace {

using graph::Lifetime;
using graph::Operand;

Operand operand(OperandType type, Lifetime lifetime, Dimensions dimensions = {}) {
  Operand made;
  made.type = type;
  made.lifetime = lifetime;
  made.dimensions = std::move(dimensions);
  return made;
}

Operand floats(Lifetime lifetime, Dimensions dimensions) {
  return operand(OperandType::kTensorFloat32, lifetime, std::move(dimensions));
}

template <typename T>
Operand constant(graph::Model* model, OperandType type, Dimensions dimensions,
                 const std::vector<T>& values, size_t misalignment = 0) {
  Operand made = operand(type, Lifetime::kConstantCopy, std::move(dimensions));
  auto& bytes = model->constantBytes;
  bytes.resize((bytes.size() + 15) / 16 * 16 + misalignment);
  made.location = {0, bytes.size(), values.size() * sizeof(T)};
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  bytes.insert(bytes.end(), begin, begin + made.location.length);
  return made;
}

Operand subgraphOperand(uint32_t index) {
  Operand made = operand(OperandType::kModel, Lifetime::kSubgraph);
  made.subgraphIndex = index;
  return made;
}

template <typename T>
RunArgument argument(std::vector<T>& values, Dimensions dimensions) {
  return {values.data(), values.size() * sizeof(T), std::move(dimensions), true};
}

std::shared_ptr<const Interpreter> interpret(const graph::Model& model,
                                             InterpreterOptions options = {}) {
  Status status = graph::validate(model);
  EXPECT_TRUE(status) << status.error().toString();
  status = validateOperations(model);
  EXPECT_TRUE(status) << status.error().toString();
  auto interpreter =
      Interpreter::create(std::make_shared<const graph::Model>(model), std::move(options));
  EXPECT_TRUE(interpreter) << interpreter.error().toString();
  return interpreter ? *interpreter : nullptr;
}

// out = (in + c) + c, where c is constant; `misalignment` moves its bytes off their alignment.
graph::Model addTwice(size_t misalignment = 0) {
  graph::Model model;
  model.subgraphs.resize(1);
  graph::Subgraph& main = model.main();
  main.operands = {
      floats(Lifetime::kSubgraphInput, {0, 2}),
      constant<float>(&model, OperandType::kTensorFloat32, {2}, {1.0f, 10.0f}, misalignment),
      constant<int32_t>(&model, OperandType::kInt32, {}, {0}, misalignment),
      floats(Lifetime::kTemporary, {}), floats(Lifetime::kSubgraphOutput, {0, 2})};
  main.operations = {{OperationType::kAdd, {0, 1, 2}, {3}, ""},
                     {OperationType::kAdd, {3, 1, 2}, {4}, ""}};
  main.inputs = {0};
  main.outputs = {4};
  return model;
}

// out = condition ? in + in : in * in. The branches are subgraphs 1 and 2.
graph::Model branching() {
  graph::Model model;
  model.subgraphs.resize(3);
  model.main().operands = {operand(OperandType::kTensorBool8, Lifetime::kSubgraphInput, {1}),
                           subgraphOperand(1), subgraphOperand(2),
                           floats(Lifetime::kSubgraphInput, {2}),
                           floats(Lifetime::kSubgraphOutput, {2})};
  model.main().operations = {{OperationType::kIf, {0, 1, 2, 3}, {4}, ""}};
  model.main().inputs = {0, 3};
  model.main().outputs = {4};
  for (size_t g : {1, 2}) {
    graph::Subgraph& branch = model.subgraphs[g];
    branch.operands = {floats(Lifetime::kSubgraphInput, {2}),
                       constant<int32_t>(&model, OperandType::kInt32, {}, {0}),
                       floats(Lifetime::kSubgraphOutput, {2})};
    branch.operations = {{g == 1 ? OperationType::kAdd : OperationType::kMul, {0, 0, 1}, {2}, ""}};
    branch.inputs = {0};
    branch.outputs = {2};
  }
  return model;
}

// while (value < limit) { value = value + step; state = state + value }. The loop takes and returns
// value and state; it only takes limit and step. Subgraph 1 is the condition, 2 the body.
graph::Model looping() {
  graph::Model model;
  model.subgraphs.resize(3);
  graph::Subgraph& main = model.main();
  main.operands = {subgraphOperand(1), subgraphOperand(2)};
  for (int i = 0; i < 4; ++i) main.operands.push_back(floats(Lifetime::kSubgraphInput, {1}));
  main.operands.push_back(floats(Lifetime::kSubgraphOutput, {1}));
  main.operands.push_back(floats(Lifetime::kSubgraphOutput, {1}));
  main.operations = {{OperationType::kWhile, {0, 1, 2, 3, 4, 5}, {6, 7}, ""}};
  main.inputs = {2, 3, 4, 5};
  main.outputs = {6, 7};

  graph::Subgraph& condition = model.subgraphs[1];
  for (int i = 0; i < 4; ++i) condition.operands.push_back(floats(Lifetime::kSubgraphInput, {1}));
  condition.operands.push_back(operand(OperandType::kTensorBool8, Lifetime::kSubgraphOutput, {1}));
  condition.operations = {{OperationType::kLess, {0, 2}, {4}, ""}};
  condition.inputs = {0, 1, 2, 3};
  condition.outputs = {4};

  graph::Subgraph& body = model.subgraphs[2];
  for (int i = 0; i < 4; ++i) body.operands.push_back(floats(Lifetime::kSubgraphInput, {1}));
  body.operands.push_back(constant<int32_t>(&model, OperandType::kInt32, {}, {0}));
  body.operands.push_back(floats(Lifetime::kSubgraphOutput, {1}));
  body.operands.push_back(floats(Lifetime::kSubgraphOutput, {1}));
  body.operations = {{OperationType::kAdd, {0, 3, 4}, {5}, ""},
                     {OperationType::kAdd, {1, 5, 4}, {6}, ""}};
  body.inputs = {0, 1, 2, 3};
  body.outputs = {5, 6};
  return model;
}

RunResult runLoop(const Interpreter& interpreter, float value, float limit, float step,
                  std::vector<float>* out, std::vector<float>* state,
                  const RunOptions& options = {}) {
  std::vector<float> values[] = {{value}, {0.0f}, {limit}, {step}};
  std::vector<RunArgument> inputs;
  for (auto& list : values) inputs.push_back(argument(list, {1}));
  out->assign(1, -1.0f);
  state->assign(1, -1.0f);
  return interpreter.run(inputs, {argument(*out, {1}), argument(*state, {1})}, options);
}

TEST(Interpreter, RunsAgainWithOtherShapes) {
  const auto interpreter = interpret(addTwice());
  ASSERT_NE(interpreter, nullptr);
  for (uint32_t rows : {1u, 3u, 2u}) {
    std::vector<float> in(rows * 2, 5.0f), out(rows * 2);
    const RunResult result =
        interpreter->run({argument(in, {rows, 2})}, {argument(out, {0, 2})}, {});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.outputShapes[0].dimensions, Dimensions({rows, 2}));
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i % 2 == 0 ? 7.0f : 25.0f);
  }
}

TEST(Interpreter, MisalignedConstantsAndArguments) {
  const auto interpreter = interpret(addTwice(3));
  ASSERT_NE(interpreter, nullptr);
  const std::vector<float> in = {5.0f, 6.0f};
  std::vector<uint8_t> memory(32);
  std::memcpy(memory.data() + 1, in.data(), 8);
  const RunResult result = interpreter->run({{memory.data() + 1, 8, {1, 2}, true}},
                                            {{memory.data() + 17, 8, {1, 2}, true}}, {});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  std::vector<float> out(2);
  std::memcpy(out.data(), memory.data() + 17, 8);
  EXPECT_EQ(out, std::vector<float>({7.0f, 26.0f}));
}

TEST(Interpreter, ZeroSizedTensorsPass) {
  const auto interpreter = interpret(addTwice());
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> out(2, -1.0f);
  const RunResult result = interpreter->run({{nullptr, 0, {0, 2}, true}}, {argument(out, {})}, {});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(result.outputShapes[0].dimensions, Dimensions({0, 2}));
  EXPECT_EQ(out, std::vector<float>(2, -1.0f));
}

TEST(Interpreter, WrongArgumentsAreErrors) {
  const auto interpreter = interpret(addTwice());
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> in(4), out(4);
  const RunArgument good = argument(in, {2, 2});
  const RunArgument result = argument(out, {2, 2});
  EXPECT_FALSE(interpreter->run({}, {result}, {}).status);
  EXPECT_FALSE(interpreter->run({good}, {}, {}).status);
  EXPECT_FALSE(interpreter->run({argument(in, {2, 3})}, {result}, {}).status);
  EXPECT_FALSE(interpreter->run({argument(in, {4})}, {result}, {}).status);
  EXPECT_FALSE(interpreter->run({argument(in, {3, 2})}, {result}, {}).status) << "too short";
  EXPECT_FALSE(interpreter->run({argument(in, {0xffffffff, 2})}, {result}, {}).status);
  EXPECT_FALSE(interpreter->run({RunArgument()}, {result}, {}).status) << "omitted";
  EXPECT_FALSE(interpreter->run({good}, {argument(out, {1, 2})}, {}).status) << "other shape";
  EXPECT_TRUE(interpreter->run({good}, {result}, {}).status);
}

TEST(Interpreter, LimitOnActivationsNamesTheTensor) {
  graph::Model model = addTwice();
  model.main().operands[3].name = "the sum";
  InterpreterOptions options;
  options.maxActivationBytes = 100;
  const auto interpreter = interpret(model, options);
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> in(2000), out(2000);
  EXPECT_TRUE(interpreter->run({argument(in, {12, 2})}, {argument(out, {})}, {}).status);
  const RunResult result = interpreter->run({argument(in, {1000, 2})}, {argument(out, {})}, {});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(result.status.error().message().find("the sum"), std::string::npos);

  model.main().operands[3].dimensions = {1000, 2};
  const auto refused = Interpreter::create(std::make_shared<const graph::Model>(model), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(refused.error().message().find("the sum"), std::string::npos);
}

TEST(Interpreter, IfTakesTheBranchOfItsCondition) {
  const auto interpreter = interpret(branching());
  ASSERT_NE(interpreter, nullptr);
  for (const bool isThen : {true, false}) {
    std::vector<uint8_t> condition = {isThen};
    std::vector<float> in = {3.0f, 5.0f}, out(2);
    const RunResult result =
        interpreter->run({argument(condition, {1}), argument(in, {2})}, {argument(out, {2})}, {});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(out, isThen ? std::vector<float>({6.0f, 10.0f}) : std::vector<float>({9.0f, 25.0f}));
  }
}

TEST(Interpreter, IfWithoutConditionFails) {
  const auto interpreter = interpret(branching());
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> in(2), out(2);
  EXPECT_FALSE(
      interpreter->run({RunArgument(), argument(in, {2})}, {argument(out, {2})}, {}).status);
}

TEST(Interpreter, BranchesOfOtherSignaturesAreRefused) {
  graph::Model model = branching();
  model.subgraphs[2].operands[2].type = OperandType::kTensorInt32;
  EXPECT_FALSE(validateOperations(model));
  model = branching();
  model.subgraphs[1].operands[0].dimensions = {3};
  EXPECT_FALSE(validateOperations(model));
  model = branching();
  model.main().operations[0].inputs.pop_back();
  EXPECT_FALSE(validateOperations(model));
  model = branching();
  model.main().operands[0].type = OperandType::kTensorFloat32;
  EXPECT_FALSE(validateOperations(model));
}

TEST(Interpreter, WhileCarriesItsState) {
  const auto interpreter = interpret(looping());
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> out, state;
  RunResult result = runLoop(*interpreter, 0.0f, 5.0f, 1.0f, &out, &state);
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(out[0], 5.0f);
  EXPECT_EQ(state[0], 15.0f);
  result = runLoop(*interpreter, 7.0f, 5.0f, 1.0f, &out, &state);
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(out[0], 7.0f) << "a loop without rounds gives its inputs";
  EXPECT_EQ(state[0], 0.0f);
}

TEST(Interpreter, EndlessWhileMissesItsTime) {
  const auto interpreter = interpret(looping());
  ASSERT_NE(interpreter, nullptr);
  std::vector<float> out, state;
  RunOptions options;
  options.loopTimeoutNanoseconds = 20'000'000;
  RunResult result = runLoop(*interpreter, 0.0f, 5.0f, 0.0f, &out, &state, options);
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
  options.loopTimeoutNanoseconds = UINT64_MAX;
  options.deadline = base::Deadline::after(20'000'000);
  result = runLoop(*interpreter, 0.0f, 5.0f, 0.0f, &out, &state, options);
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
}

TEST(Interpreter, RunsOfSeveralThreadsAreIndependent) {
  const auto interpreter = interpret(looping());
  ASSERT_NE(interpreter, nullptr);
  std::vector<int> wrong(8, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        const auto limit = static_cast<float>(t + 1);
        for (int round = 0; round < 50; ++round) {
          std::vector<float> out, state;
          const RunResult result = runLoop(*interpreter, 0.0f, limit, 1.0f, &out, &state);
          wrong[t] += !result.status || out[0] != limit || state[0] != limit * (limit + 1) / 2;
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

TEST(Interpreter, DeepNestingIsRefusedNotRecursedInto) {
  graph::Model model = branching();
  // Both branches of subgraph k refer to k + 1.
  const graph::Subgraph last = model.subgraphs[1];
  graph::Subgraph nested = model.main();
  model.subgraphs.resize(1);
  for (uint32_t g = 0; g < 5000; ++g) {
    model.subgraphs.push_back(nested);
    model.subgraphs[g].operands[1].subgraphIndex = g + 1;
    model.subgraphs[g].operands[2].subgraphIndex = g + 1;
  }
  model.subgraphs.back() = last;
  const auto interpreter = Interpreter::create(std::make_shared<const graph::Model>(model), {});
  ASSERT_FALSE(interpreter);
  EXPECT_EQ(interpreter.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::ops
