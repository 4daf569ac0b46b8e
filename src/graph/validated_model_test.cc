// SPDX-License-Identifier: Apache-2.0
#include "graph/validated_model.h"

#include <gtest/gtest.h>

#include <memory>
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

TEST(ValidatedModelTest, AModelThatNobodyElseHasIsReleasedWithoutACopy) {
  auto validated = ValidatedModel::of(makeModel(true));
  ASSERT_TRUE(validated);
  const Operand* const operands = (*validated)->main().operands.data();
  std::shared_ptr<const Model> model = *std::move(validated);
  const std::shared_ptr<const Model> other = model;
  const Model copy = ValidatedModel::release(std::move(model));
  EXPECT_NE(copy.main().operands.data(), operands);
  EXPECT_EQ(copy.main().outputs, other->main().outputs);
  model = ValidatedModel::of(makeModel(true)).value();
  const Operand* const own = model->main().operands.data();
  const Model released = ValidatedModel::release(std::move(model));
  EXPECT_EQ(released.main().operands.data(), own);
  EXPECT_EQ(ValidatedModel::from(released), nullptr);
  // Who else may have another model is not known.
  const Model plain = ValidatedModel::release(std::make_shared<const Model>(makeModel(true)));
  EXPECT_EQ(plain.main().outputs, makeModel(true).main().outputs);
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
