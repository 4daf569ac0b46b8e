// SPDX-License-Identifier: Apache-2.0
// A model whose caches lie by token computes what it computed before, on hearth-cpu and on the
// reference kernels.
#include "ops/kv_layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "drivers/cpu/testing/compared_models.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

constexpr float kTolerance = 3e-6f;
constexpr uint32_t kHeads = 2, kSize = 4, kTokens = 24, kPosition = 7;

// How the values of the new tokens come to lie as in the cache.
enum class Update { kInput, kTransposed, kTransposedTwice, kConstant };

struct Step {
  uint32_t tokens = 1;
  Update update = Update::kInput;
  bool isBeginPacked = true;  // of a position, or an input
  bool isSecondReader = false;
};

struct StepModel {
  graph::Model model;
  std::vector<Bytes> inputs;  // queries, cache, what the values are made of, position or begin
};

// Values of tokens are written to a cache [1, heads, size, tokens], which weights multiply.
StepModel makeStep(const Step& step) {
  StepModel made;
  ModelBuilder builder;
  const Dimensions cached = {1, kHeads, kSize, kTokens};
  const Dimensions part = {1, kHeads, kSize, step.tokens};
  const Dimensions scores = {1, kHeads, 3, kTokens};
  const uint32_t weights = builder.input(kFloat, scores);
  made.inputs.push_back(floatsFor(scores, 1));
  const uint32_t cache = builder.input(kFloat, cached);
  made.inputs.push_back(floatsFor(cached, 2));
  uint32_t update = 0;
  switch (step.update) {
    case Update::kInput:
      update = builder.input(kFloat, part);
      made.inputs.push_back(floatsFor(part, 3));
      break;
    case Update::kConstant:
      update = builder.constant(kFloat, part, randomFloats(countOf(part), 3));
      break;
    default: {
      // As exports have it: [1, tokens, heads, size].
      const Dimensions rows = {1, step.tokens, kHeads, kSize};
      update = builder.temporary(kFloat, part);
      builder.operation(
          OperationType::kTranspose,
          {builder.input(kFloat, rows),
           builder.constant(OperandType::kTensorInt32, {4}, std::vector<int32_t>{0, 2, 3, 1})},
          {update});
      made.inputs.push_back(floatsFor(rows, 3));
    }
  }
  uint32_t begin = 0;
  if (step.isBeginPacked) {
    const uint32_t position = builder.input(OperandType::kTensorInt32, {1});
    made.inputs.push_back(bytesOf(std::vector<int32_t>{kPosition}));
    begin = builder.temporary(OperandType::kTensorInt32, {4});
    const uint32_t zeros =
        builder.constant(OperandType::kTensorInt32, {3}, std::vector<int32_t>{0, 0, 0});
    builder.operation(OperationType::kConcatenation, {zeros, position, builder.scalar(0)}, {begin});
  } else {
    begin = builder.input(OperandType::kTensorInt32, {4});
    // Moved until the update fits.
    made.inputs.push_back(bytesOf(std::vector<int32_t>{0, -5, 1, 1000}));
  }
  const uint32_t grown = builder.output(kFloat, cached);
  builder.operation(OperationType::kDynamicUpdateSlice, {cache, update, begin}, {grown});
  if (step.update == Update::kTransposedTwice)
    builder.operation(OperationType::kNeg, {update}, {builder.output(kFloat, part)});
  builder.operation(OperationType::kBatchMatmul,
                    {weights, grown, builder.scalar(false), builder.scalar(true)},
                    {builder.output(kFloat, {1, kHeads, 3, kSize})});
  if (step.isSecondReader)
    builder.operation(OperationType::kNeg, {grown}, {builder.output(kFloat, cached)});
  made.model = builder.model();
  return made;
}

// The matrices of a cache, transposed.
Bytes transposed(const Bytes& bytes, uint32_t rows, uint32_t columns) {
  Bytes made(bytes.size());
  for (uint32_t i = 0; i < kHeads * rows * columns; ++i) {
    const uint32_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    std::memcpy(made.data() + sizeof(float) * (matrix * rows * columns + column * rows + row),
                bytes.data() + sizeof(float) * i, sizeof(float));
  }
  return made;
}

void expectTheSame(const Step& step) {
  const StepModel before = makeStep(step);
  const std::vector<ops::CachePair> pairs = {{.input = 1, .output = 0}};
  const auto after = ops::layOutByToken(before.model, pairs);
  ASSERT_TRUE(after) << after.error().toString();
  ASSERT_TRUE(graph::validate(*after->model));
  ASSERT_TRUE(ops::validateOperations(*after->model));
  ASSERT_EQ(after->isExchanged, std::vector<bool>{true});
  const graph::Subgraph& main = after->model->main();
  const Dimensions byToken = {1, kHeads, kTokens, kSize};
  EXPECT_EQ(main.operands[main.inputs[1]].dimensions, byToken);
  EXPECT_EQ(main.operands[main.outputs[0]].dimensions, byToken);
  std::vector<Bytes> inputs = before.inputs;
  inputs[1] = transposed(inputs[1], kSize, kTokens);
  EXPECT_EQ(differenceFromReference(*after->model, inputs, nullptr, kTolerance), "");
  const auto expected = runBoth(before.model, before.inputs);
  const auto made = runBoth(*after->model, inputs);
  ASSERT_TRUE(expected && made);
  EXPECT_EQ(transposed(made->expected[0], kTokens, kSize), expected->expected[0]);
  for (size_t i = 1; i < made->expected.size(); ++i)
    EXPECT_EQ(made->expected[i], expected->expected[i]) << i;
}

TEST(KvLayoutTest, ResultsStayTheSame) {
  for (const uint32_t tokens : {1u, 5u})
    for (const Update update :
         {Update::kInput, Update::kTransposed, Update::kTransposedTwice, Update::kConstant})
      for (const bool isPacked : {true, false}) {
        SCOPED_TRACE(
            testing::PrintToString(std::tuple(tokens, static_cast<int>(update), isPacked)));
        expectTheSame({.tokens = tokens, .update = update, .isBeginPacked = isPacked});
      }
}

TEST(KvLayoutTest, ATransposeTakesTheOtherOrder) {
  const StepModel step = makeStep({.tokens = 5, .update = Update::kTransposed});
  const std::vector<ops::CachePair> pairs = {{.input = 1, .output = 0}};
  const auto after = ops::layOutByToken(step.model, pairs);
  ASSERT_TRUE(after) << after.error().toString();
  // Only the order of the begins is new.
  EXPECT_EQ(after->model->main().operations.size(), step.model.main().operations.size() + 1);
}

TEST(KvLayoutTest, OtherCachesStayAsTheyAre) {
  const auto isExchanged = [](const graph::Model& model) {
    const std::vector<ops::CachePair> pairs = {{.input = 1, .output = 0}};
    const auto made = ops::layOutByToken(model, pairs);
    EXPECT_TRUE(made) << made.error().toString();
    return made && made->isExchanged.front();
  };
  EXPECT_TRUE(isExchanged(makeStep({}).model));
  // Something else reads the cache.
  EXPECT_FALSE(isExchanged(makeStep({.isSecondReader = true}).model));
  // All of it is replaced, so nothing says where the tokens lie.
  EXPECT_FALSE(isExchanged(makeStep({.tokens = kTokens}).model));
  // The tokens do not lie along the last axis.
  graph::Model otherAxis = makeStep({.tokens = 2}).model;
  for (graph::Operand& operand : otherAxis.main().operands)
    if (operand.dimensions == Dimensions{1, kHeads, kSize, 2})
      operand.dimensions = {1, kHeads, 2, kTokens};
  EXPECT_FALSE(isExchanged(otherAxis));
  // Nobody knows how the product reads it.
  graph::Model unknown = makeStep({}).model;
  for (graph::Operation& operation : unknown.main().operations)
    if (operation.type == OperationType::kBatchMatmul) operation.inputs[3] = operation.inputs[0];
  EXPECT_FALSE(isExchanged(unknown));
  // Arguments are missing.
  graph::Model damaged = makeStep({}).model;
  for (graph::Operation& operation : damaged.main().operations)
    if (operation.type == OperationType::kDynamicUpdateSlice) operation.inputs.resize(1);
  EXPECT_FALSE(isExchanged(damaged));
}

}  // namespace
}  // namespace hearth::cpu
