// SPDX-License-Identifier: Apache-2.0
#include "graph/validated_model.h"

#include <gtest/gtest.h>

#include <utility>

namespace hearth::graph {
namespace {

// A model that is valid if `isValid`; otherwise its output does not exist.
Model makeModel(bool isValid) {
  Model model;
  model.subgraphs.resize(1);
  Operand operand;
  operand.dimensions = {1};
  operand.lifetime = Lifetime::kSubgraphInput;
  model.main().operands.push_back(operand);
  operand.lifetime = Lifetime::kSubgraphOutput;
  model.main().operands.push_back(operand);
  model.main().operations = {{OperationType::kRelu, {0}, {1}, ""}};
  model.main().inputs = {0};
  model.main().outputs = {isValid ? 1u : 7u};
  return model;
}

TEST(ValidatedModelTest, IsMadeOfAValidModelOnly) {
  EXPECT_FALSE(ValidatedModel::of(makeModel(false)));
  const auto validated = ValidatedModel::of(makeModel(true));
  ASSERT_TRUE(validated);
  const Model& model = **validated;
  EXPECT_EQ(ValidatedModel::from(model), validated->get());
  EXPECT_EQ(model.main().outputs, makeModel(true).main().outputs);
}

TEST(ValidatedModelTest, OthersAreValidatedEachTime) {
  EXPECT_TRUE(validateOnce(makeModel(true)));
  Model model = makeModel(true);
  EXPECT_TRUE(validateOnce(model));
  model.main().outputs = {7};
  EXPECT_FALSE(validateOnce(model));
  EXPECT_EQ(ValidatedModel::from(model), nullptr);
}

// A model that may be changed does not count as validated, even if it is a copy of a validated one.
TEST(ValidatedModelTest, ACopyIsAnotherModel) {
  const auto validated = ValidatedModel::of(makeModel(true));
  ASSERT_TRUE(validated);
  const Model& original = **validated;
  Model copy = original;
  EXPECT_EQ(ValidatedModel::from(copy), nullptr);
  copy.main().outputs = {7};
  EXPECT_FALSE(validateOnce(copy));
  Model assigned = makeModel(false);
  assigned = original;
  EXPECT_EQ(ValidatedModel::from(assigned), nullptr);
  const Model moved = std::move(copy);
  EXPECT_EQ(ValidatedModel::from(moved), nullptr);
  EXPECT_NE(ValidatedModel::from(original), nullptr);
}

TEST(ValidatedModelTest, RemembersThatItsOperationsAreValid) {
  const auto validated = ValidatedModel::of(makeModel(true));
  ASSERT_TRUE(validated);
  EXPECT_FALSE((*validated)->areOperationsValid());
  (*validated)->setOperationsValid();
  EXPECT_TRUE((*validated)->areOperationsValid());
}

}  // namespace
}  // namespace hearth::graph
