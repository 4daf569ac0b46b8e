// SPDX-License-Identifier: Apache-2.0
// Resource variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

int32_t addHandle(ModelWriter* model, const std::string& name) {
  const int32_t handle = model->addTensor(TensorType::RESOURCE, {1});
  schema::VarHandleOptionsT options;
  options.shared_name = name;
  model->addOperator(BuiltinOperator::VAR_HANDLE, {}, {handle}, options);
  return handle;
}

// counter += input; CALL_ONCE initialises the counter with 7.
ModelWriter counterModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT32, {1});
  schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  const int32_t handle = addHandle(&model, "counter");
  const int32_t before = model.addTensor(TensorType::INT32, {1});
  const int32_t after = model.addTensor(TensorType::INT32, {1});
  model.addOperator(BuiltinOperator::READ_VARIABLE, {handle}, {before});
  schema::AddOptionsT options;
  model.addOperator(BuiltinOperator::ADD, {before, input}, {after}, options);
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
  model.setArguments({input}, {after});
  model.addSubgraph("initialisation");
  const int32_t inner = addHandle(&model, "counter");
  const int32_t seven = model.addConstant<int32_t>(TensorType::INT32, {1}, {7});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {inner, seven}, {});
  return model;
}

TEST(Resources, AreStatesOfTheModel) {
  const auto imported = tryImport(counterModel());
  ASSERT_TRUE(imported) << imported.error().toString();
  const graph::Subgraph& main = imported->model->main();
  ASSERT_EQ(imported->states.size(), 1u);
  EXPECT_EQ(imported->states[0].input, 1u);
  EXPECT_EQ(imported->states[0].output, 1u);
  EXPECT_THAT(imported->states[0].initialValue, ElementsAre(7, 0, 0, 0));
  ASSERT_EQ(main.inputs.size(), 2u);
  ASSERT_EQ(main.operations.size(), 2u);  // the addition, and the copy of a result used twice
  EXPECT_EQ(main.operations[0].type, graph::OperationType::kAdd);
  EXPECT_EQ(main.operations[0].inputs[0], main.inputs[1]);
}

TEST(Resources, BeginWithZerosWithoutInitialisation) {
  ModelWriter model = counterModel();
  model.model.subgraphs[0]->operators.erase(model.model.subgraphs[0]->operators.begin());
  const auto imported = tryImport(model);
  ASSERT_TRUE(imported) << imported.error().toString();
  EXPECT_THAT(imported->states.at(0).initialValue, ElementsAre(0, 0, 0, 0));
}

TEST(Resources, WrongUsesAreErrors) {
  ModelWriter handle = counterModel();
  handle.model.subgraphs[0]->operators[2]->inputs = {0};
  EXPECT_THAT(errorOf(handle), HasSubstr("no handle"));

  ModelWriter missing = counterModel();
  missing.model.subgraphs[0]->operators[2]->inputs = {};
  EXPECT_THAT(errorOf(missing), HasSubstr("0 inputs and 1 outputs"));

  ModelWriter bare = counterModel();
  bare.model.subgraphs[0]->operators[4]->inputs = {1};
  EXPECT_THAT(errorOf(bare), HasSubstr("lacks its input 1"));

  ModelWriter shape = counterModel();
  shape.model.subgraphs[0]->tensors[3]->shape = {2};
  EXPECT_THAT(errorOf(shape), HasSubstr("assigns TENSOR_INT32[2]"));

  ModelWriter size = counterModel();
  size.tensor(1).type = TensorType::INT64;
  size.model.buffers.back()->data.resize(8);
  EXPECT_THAT(errorOf(size), HasSubstr("initialised with 8 bytes"));

  ModelWriter once = counterModel();
  once.model.subgraphs[0]->operators[0]->builtin_options.AsCallOnceOptions()->init_subgraph_index =
      5;
  EXPECT_THAT(errorOf(once), HasSubstr("calls subgraph 5 of 2"));

  ModelWriter more = counterModel();
  more.addTensor(TensorType::INT32, {1});
  more.addOperator(BuiltinOperator::NEG, {1}, {2});
  EXPECT_THAT(errorOf(more), HasSubstr("does more than to assign constants"));

  ModelWriter argument = counterModel();
  argument.model.subgraphs[0]->inputs.push_back(1);
  EXPECT_THAT(errorOf(argument), HasSubstr("RESOURCE"));
}

}  // namespace
}  // namespace hearth::tflite
