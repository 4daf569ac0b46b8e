// SPDX-License-Identifier: Apache-2.0
#include "graph/known_model.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth::graph {
namespace {

// Valid when `isValid`; otherwise its output does not exist.
std::shared_ptr<Model> makeModel(bool isValid) {
  auto model = std::make_shared<Model>();
  model->subgraphs.resize(1);
  Operand operand;
  operand.dimensions = {1};
  operand.lifetime = Lifetime::kSubgraphInput;
  model->main().operands = {operand};
  model->main().inputs = {0};
  model->main().outputs = {isValid ? 0u : 7u};
  return model;
}

TEST(KnownModelTest, WhatIsNotKnownIsValidated) {
  const auto wrong = makeModel(false);
  EXPECT_FALSE(validateUnlessKnown(*wrong));
  rememberValid(makeModel(true));
  EXPECT_FALSE(validateUnlessKnown(*wrong));
  EXPECT_FALSE(areOperationsKnownValid(*wrong));
}

TEST(KnownModelTest, WhatIsRememberedIsNotValidatedAgain) {
  // One that is not valid shows that nobody looks.
  const auto model = makeModel(false);
  rememberValid(model);
  EXPECT_TRUE(validateUnlessKnown(*model));
  EXPECT_FALSE(areOperationsKnownValid(*model));
  rememberValidOperations(*model);
  EXPECT_TRUE(areOperationsKnownValid(*model));
  rememberValid(model);
  EXPECT_FALSE(areOperationsKnownValid(*model)) << "it may be another model with the same memory";
}

TEST(KnownModelTest, OnlyTheLastOneOfAThreadIsRemembered) {
  const auto first = makeModel(false);
  const auto second = makeModel(false);
  rememberValid(first);
  std::thread([&] { EXPECT_FALSE(validateUnlessKnown(*first)); }).join();
  rememberValid(second);
  rememberValidOperations(*first);
  EXPECT_FALSE(validateUnlessKnown(*first));
  EXPECT_FALSE(areOperationsKnownValid(*first));
  EXPECT_FALSE(areOperationsKnownValid(*second));
}

TEST(KnownModelTest, AnotherModelAtTheSameAddressIsNotKnown) {
  const std::shared_ptr<Model> place = makeModel(false);
  {
    const std::shared_ptr<const Model> shared(place.get(), [](const Model*) {});
    rememberValid(shared);
    EXPECT_TRUE(validateUnlessKnown(*place));
  }
  EXPECT_FALSE(validateUnlessKnown(*place));
}

}  // namespace
}  // namespace hearth::graph
