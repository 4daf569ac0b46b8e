// SPDX-License-Identifier: Apache-2.0
#include "graph/rank_zero.h"

#include <gtest/gtest.h>

namespace hearth::graph {
namespace {

// Adds an operand; a tensor with an empty list of dimensions has rank 0.
uint32_t add(Subgraph* graph, OperandType type, Dimensions dimensions, Lifetime lifetime) {
  Operand operand;
  operand.type = type;
  operand.isRankZeroTensor = dimensions.empty() && !isScalar(type);
  operand.dimensions = std::move(dimensions);
  operand.lifetime = lifetime;
  if (lifetime == Lifetime::kConstantCopy) operand.location = {0, 0, 4};
  graph->operands.push_back(std::move(operand));
  return static_cast<uint32_t>(graph->operands.size() - 1);
}

// out = pack(zero, squeeze(position)) + half, with which language models compute the index of a row
// in their caches.
Model rowModel() {
  Model model;
  model.constantBytes.resize(4);
  model.subgraphs.resize(1);
  Subgraph& graph = model.main();
  const auto type = OperandType::kTensorInt32;
  const uint32_t position = add(&graph, type, {1}, Lifetime::kSubgraphInput);
  const uint32_t zero = add(&graph, type, {}, Lifetime::kConstantCopy);
  const uint32_t scalar = add(&graph, type, {}, Lifetime::kTemporary);
  const uint32_t axes = add(&graph, type, {1}, Lifetime::kNoValue);
  const uint32_t axis = add(&graph, OperandType::kInt32, {}, Lifetime::kConstantCopy);
  const uint32_t packed = add(&graph, type, {2}, Lifetime::kTemporary);
  const uint32_t half = add(&graph, type, {}, Lifetime::kConstantCopy);
  const uint32_t none = add(&graph, OperandType::kInt32, {}, Lifetime::kConstantCopy);
  const uint32_t out = add(&graph, type, {2}, Lifetime::kSubgraphOutput);
  graph.operations = {{OperationType::kSqueeze, {position, axes}, {scalar}, "scalar"},
                      {OperationType::kPack, {axis, zero, scalar}, {packed}, "row"},
                      {OperationType::kAdd, {packed, half, none}, {out}, "sum"}};
  graph.inputs = {position};
  graph.outputs = {out};
  return model;
}

TEST(RankZeroTest, ScalarsBecomeTensorsOfOneElement) {
  Model model = rowModel();
  ASSERT_TRUE(validate(model));
  ASSERT_TRUE(liftRankZeroTensors(&model));
  const Status valid = validate(model);
  EXPECT_TRUE(valid) << valid.error().toString();
  const Subgraph& graph = model.main();
  for (const Operand& operand : graph.operands) EXPECT_FALSE(operand.isRankZeroTensor);
  EXPECT_EQ(graph.operands[1].dimensions, Dimensions{1});
  EXPECT_EQ(graph.operands[2].dimensions, Dimensions{1});
  EXPECT_EQ(graph.operations[0].type, OperationType::kReshape);
  EXPECT_EQ(graph.operands[graph.operations[0].inputs[1]].dimensions, Dimensions{1});
  EXPECT_EQ(graph.operations[1].type, OperationType::kConcatenation);
  EXPECT_EQ(graph.operations[1].inputs, (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_EQ(graph.operands[5].dimensions, Dimensions{2});
}

TEST(RankZeroTest, ModelsWithoutScalarsAreUnchanged) {
  Model model = rowModel();
  ASSERT_TRUE(liftRankZeroTensors(&model));
  const size_t operands = model.main().operands.size();
  ASSERT_TRUE(liftRankZeroTensors(&model));
  EXPECT_EQ(model.main().operands.size(), operands);
}

TEST(RankZeroTest, OperationsThatTellTheDifferenceAreNamed) {
  Model model = rowModel();
  model.main().operations[1].type = OperationType::kGather;
  model.main().operations[1].name = "look-up";
  const Status lifted = liftRankZeroTensors(&model);
  ASSERT_FALSE(lifted);
  EXPECT_EQ(lifted.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(lifted.error().toString().find("GATHER (look-up)"), std::string::npos);
}

TEST(RankZeroTest, TheClientsViewIsUnchanged) {
  Model model = rowModel();
  Operand& input = model.main().operands[0];
  input.dimensions.clear();
  input.isRankZeroTensor = true;
  const Status lifted = liftRankZeroTensors(&model);
  ASSERT_FALSE(lifted);
  EXPECT_NE(lifted.error().toString().find("input"), std::string::npos);
}

}  // namespace
}  // namespace hearth::graph
