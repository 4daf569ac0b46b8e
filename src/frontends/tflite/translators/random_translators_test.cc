// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

ModelWriter randomModel(int64_t seed, int64_t seed2) {
  ModelWriter model;
  const int32_t shape = model.ints({2, 3});
  const int32_t logits = model.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t count = model.ints({5});
  const int32_t numbers = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t classes = model.addTensor(TensorType::INT64, {2, 5});
  schema::RandomOptionsT options;
  options.seed = seed;
  options.seed2 = seed2;
  model.addOperator(BuiltinOperator::RANDOM_UNIFORM, {shape}, {numbers}, options);
  model.addOperator(BuiltinOperator::MULTINOMIAL, {logits, count}, {classes}, options);
  model.setArguments({logits}, {numbers, classes});
  return model;
}

TEST(RandomTranslators, SeedsHaveAPositionThatIsAState) {
  const ImportedGraph imported = import(randomModel(int64_t{1} << 32, (int64_t{1} << 40) + 7));
  const std::vector<std::string> lines = linesOf(*imported.model);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], testing::StartsWith("RANDOM_UNIFORM t0 % %"));
  EXPECT_THAT(lines[1], testing::StartsWith("MULTINOMIAL t1 t2 % %"));
  ASSERT_EQ(imported.states.size(), 2u);
  EXPECT_EQ(imported.states[0].initialValue, std::vector<uint8_t>(8, 0));
  // TFLite keeps 32 bits of each seed.
  const graph::Subgraph& main = imported.model->main();
  const graph::Operand& seeds = main.operands[main.operations[0].inputs[1]];
  EXPECT_EQ(valueOf<int64_t>(*imported.model, seeds, 0), 0);
  EXPECT_EQ(valueOf<int64_t>(*imported.model, seeds, 1), 7);
}

TEST(RandomTranslators, WithoutSeedsThereIsNoState) {
  EXPECT_TRUE(import(randomModel(0, 0)).states.empty());
}

TEST(RandomTranslators, AStateInABranchIsRefused) {
  for (const int64_t seed : {0, 5}) {
    ModelWriter model;
    const int32_t condition = model.addTensor(TensorType::BOOL, {1});
    const int32_t output = model.addTensor(TensorType::FLOAT32, {3});
    schema::IfOptionsT branches;
    branches.then_subgraph_index = 1;
    branches.else_subgraph_index = 1;
    model.addOperator(BuiltinOperator::IF, {condition}, {output}, branches);
    model.setArguments({condition}, {output});
    model.addSubgraph("branch");
    const int32_t shape = model.ints({3});
    const int32_t numbers = model.addTensor(TensorType::FLOAT32, {3});
    schema::RandomOptionsT options;
    options.seed = seed;
    model.addOperator(BuiltinOperator::RANDOM_STANDARD_NORMAL, {shape}, {numbers}, options);
    model.setArguments({}, {numbers});
    EXPECT_THAT(errorOf(model),
                HasSubstr(seed == 0 ? "imported" : "It has a state and belongs to"));
  }
}

}  // namespace
}  // namespace hearth::tflite
