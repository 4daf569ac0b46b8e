// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"
#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite {
namespace {

// if (t0) t1 + t1 else t1: the second subgraph returns its input.
ModelWriter branches() {
  ModelWriter model;
  model.addTensor(TensorType::BOOL, {});
  model.addTensor(TensorType::FLOAT32, {2});
  model.addTensor(TensorType::FLOAT32, {2});
  schema::IfOptionsT options;
  options.then_subgraph_index = 1;
  options.else_subgraph_index = 2;
  model.addOperator(BuiltinOperator::IF, {0, 1}, {2}, options);
  model.setArguments({0, 1}, {2});
  model.addSubgraph("then");
  model.addTensor(TensorType::FLOAT32, {2});
  model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::ADD, {0, 0}, {1});
  model.setArguments({0}, {1});
  model.addSubgraph("else");
  model.addTensor(TensorType::FLOAT32, {2});
  model.setArguments({0}, {0});
  return model;
}

TEST(ControlFlowTranslators, If) {
  const ImportedGraph imported = import(branches());
  ASSERT_EQ(imported.model->subgraphs.size(), 3u);
  EXPECT_THAT(linesOf(*imported.model, 0), ElementsAre("IF t0 #1 #2 t1 -> t2"));
  EXPECT_THAT(linesOf(*imported.model, 1), ElementsAre("ADD t0 t0 0 -> t1"));
  EXPECT_THAT(linesOf(*imported.model, 2), ElementsAre("RESHAPE t0 {2} -> t0"));
}

// The result of the branches, and a tensor that is computed from it, are declared without
// dimensions.
TEST(ControlFlowTranslators, RanksThatTheFileDoesNotDeclareAreUnknown) {
  const auto ranksAreUnknown = [](bool isRankSaid, bool haveBranchesDimensions) {
    ModelWriter model = branches();
    schema::SubGraphT& main = *model.model.subgraphs[0];
    main.tensors[2]->shape.clear();
    main.tensors[2]->has_rank = isRankSaid;
    main.tensors.push_back(std::make_unique<schema::TensorT>(*main.tensors[2]));
    main.tensors[3]->name = "t3";
    auto code = std::make_unique<schema::OperatorCodeT>();
    code->builtin_code = BuiltinOperator::EXP;
    model.model.operator_codes.push_back(std::move(code));
    auto exp = std::make_unique<schema::OperatorT>();
    exp->opcode_index = static_cast<uint32_t>(model.model.operator_codes.size()) - 1;
    exp->inputs = {2};
    exp->outputs = {3};
    main.operators.push_back(std::move(exp));
    main.outputs = {3};
    if (!haveBranchesDimensions)
      for (const size_t i : {1, 2})
        for (const auto& tensor : model.model.subgraphs[i]->tensors) tensor->shape.clear();
    const ImportedGraph imported = import(model);
    std::vector<bool> unknown;
    for (const graph::Operation& operation : imported.model->main().operations)
      for (const uint32_t output : operation.outputs)
        unknown.push_back(!imported.model->main().operands[output].isRankZeroTensor);
    return unknown;
  };
  EXPECT_THAT(ranksAreUnknown(false, true), ElementsAre(true, true));
  EXPECT_THAT(ranksAreUnknown(true, true), ElementsAre(false, false));
  EXPECT_THAT(ranksAreUnknown(false, false), ElementsAre(false, false));
}

TEST(ControlFlowTranslators, WrongSubgraphs) {
  for (const int32_t index : {-1, 3, 1 << 30}) {
    ModelWriter model = branches();
    model.model.subgraphs[0]->operators[0]->builtin_options.AsIfOptions()->else_subgraph_index =
        index;
    EXPECT_THAT(errorOf(model), HasSubstr("does not exist"));
  }
  ModelWriter model = branches();
  model.model.subgraphs[0]->operators[0]->builtin_options.AsIfOptions()->else_subgraph_index = 0;
  EXPECT_NE(errorOf(model), "imported");
  ModelWriter arguments = branches();
  arguments.setArguments({}, {});
  EXPECT_THAT(errorOf(arguments), HasSubstr("calls subgraph 2 with 1 inputs and 1 outputs"));
}

TEST(ControlFlowTranslators, While) {
  ModelWriter model;
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::INT32, {1});
  addWhile(&model);
  model.setArguments({0}, {1});
  addCountingLoop(&model);
  const ImportedGraph imported = import(model);
  ASSERT_EQ(imported.model->subgraphs.size(), 3u);
  EXPECT_THAT(linesOf(*imported.model, 0), ElementsAre("WHILE #1 #2 t0 -> t1"));
  EXPECT_THAT(linesOf(*imported.model, 1), ElementsAre("LESS t0 t2 -> t1"));
}

}  // namespace
}  // namespace hearth::tflite
