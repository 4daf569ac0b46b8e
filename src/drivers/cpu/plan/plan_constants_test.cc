// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/plan_constants.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

using graph::OperationType;

// A model with constants of 8 bytes in the model itself.
graph::Model modelOf(std::span<const uint8_t> constants) {
  graph::Model model;
  model.subgraphs.emplace_back();
  for (const uint8_t value : constants) {
    graph::Operand operand;
    operand.type = graph::OperandType::kTensorQuant8AsymmSigned;
    operand.dimensions = {8};
    operand.scale = 0.5f;
    operand.lifetime = graph::Lifetime::kConstantCopy;
    operand.location = {0, model.constantBytes.size(), 8};
    model.constantBytes.resize(model.constantBytes.size() + 8, value);
    model.main().operands.push_back(std::move(operand));
  }
  return model;
}

TEST(PlanConstantsTest, EqualPackingsHaveOneSource) {
  const graph::Model model = modelOf({{1, 1, 2}});
  PackedWeights weights;
  PlanConstants constants(model, &weights);
  const auto source = [&](OperationType type, uint32_t operand, uint64_t parameter) {
    const auto digest = constants.packingSource(type, {{operand}}, {{parameter}});
    return digest == nullptr ? base::Sha256Digest() : *digest;
  };
  const base::Sha256Digest first = source(OperationType::kConv2d, 0, 5);
  EXPECT_NE(first, base::Sha256Digest());
  EXPECT_EQ(source(OperationType::kConv2d, 1, 5), first);
  EXPECT_NE(source(OperationType::kConv2d, 2, 5), first);
  EXPECT_NE(source(OperationType::kConv2d, 0, 6), first);
  EXPECT_NE(source(OperationType::kFullyConnected, 0, 5), first);
  EXPECT_NE(source(OperationType::kConv2d, UINT32_MAX, 5), first);
}

TEST(PlanConstantsTest, WhereAllIsPresetNoSourceIsNamed) {
  const graph::Model model = modelOf({{1}});
  PackedWeights weights;
  PlanConstants constants(model, &weights);
  EXPECT_NE(constants.packingSource(OperationType::kConv2d, {{0}}, {}), nullptr);
  weights.setAllPreset();
  EXPECT_EQ(constants.packingSource(OperationType::kConv2d, {{0}}, {}), nullptr);
}

}  // namespace
}  // namespace hearth::cpu
