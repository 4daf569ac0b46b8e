// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/chosen_outputs.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

constexpr std::array kSum = {"t2"};

// t2 = t0 + t1, and t3 = t2 · |t1|.
ModelWriter sumAndProduct() {
  ModelWriter model;
  std::vector<int32_t> tensors;
  for (int i = 0; i < 5; ++i) tensors.push_back(model.addTensor(TensorType::FLOAT32, {2}));
  model.addOperator(BuiltinOperator::ADD, {tensors[0], tensors[1]}, {tensors[2]},
                    schema::AddOptionsT());
  model.addOperator(BuiltinOperator::ABS, {tensors[1]}, {tensors[4]});
  model.addOperator(BuiltinOperator::MUL, {tensors[2], tensors[4]}, {tensors[3]},
                    schema::MulOptionsT());
  model.setArguments({tensors[0], tensors[1]}, {tensors[3], tensors[2]});
  return model;
}

TEST(ChosenOutputs, OperationsThatLeadToNoOtherStay) {
  ImportedGraph graph = import(sumAndProduct());
  EXPECT_EQ(linesOf(*graph.model).size(), 3u);
  EXPECT_TRUE(*chooseOutputs(kSum, &graph));
  EXPECT_THAT(linesOf(*graph.model), ElementsAre(HasSubstr("ADD t0 t1")));
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.outputs[0].name, "t2");
  EXPECT_EQ(graph.model->main().outputs.size(), 1u);
  // One that is read by another output stays computed, too.
  graph = import(sumAndProduct());
  EXPECT_TRUE(*chooseOutputs(std::array{"t3"}, &graph));
  EXPECT_EQ(linesOf(*graph.model).size(), 3u);
  EXPECT_EQ(graph.outputs.size(), 1u);
}

TEST(ChosenOutputs, AllOrNoneAreAsTheyWere) {
  ImportedGraph graph = import(sumAndProduct());
  EXPECT_FALSE(*chooseOutputs(std::array{"t2", "t3", "t2"}, &graph));
  EXPECT_EQ(graph.outputs.size(), 2u);
  const auto chosen = chooseOutputs(std::array{"t2", "t0"}, &graph);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(chosen.error().message(), HasSubstr("no output \"t0\""));
  EXPECT_EQ(linesOf(*graph.model).size(), 3u);
}

// States follow the outputs, and what leads to them stays.
TEST(ChosenOutputs, StatesStay) {
  ModelWriter model;
  const int32_t in = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t square = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t weights = model.addConstant<float>(TensorType::FLOAT32, {1, 2}, {1, 1});
  const int32_t times = model.addConstant<float>(TensorType::FLOAT32, {1, 3}, {1, 1, 1});
  const int32_t state = model.addVariable(TensorType::FLOAT32, {1, 3});
  const int32_t out = model.addTensor(TensorType::FLOAT32, {1, 1});
  model.addOperator(BuiltinOperator::SQUARE, {in}, {square});
  schema::SVDFOptionsT options;
  options.rank = 1;
  model.addOperator(BuiltinOperator::SVDF, {in, weights, times, -1, state}, {out},
                    std::move(options));
  model.setArguments({in}, {out, square});
  ImportedGraph graph = import(model);
  ASSERT_EQ(graph.states.size(), 1u);
  EXPECT_EQ(graph.states[0].output, 2u);
  const std::string name = graph.outputs[1].name;
  EXPECT_TRUE(*chooseOutputs(std::array{name.c_str()}, &graph));
  EXPECT_EQ(graph.states[0].output, 1u);
  EXPECT_EQ(graph.model->main().outputs.size(), 2u);
  EXPECT_EQ(linesOf(*graph.model).size(), 2u);
}

}  // namespace
}  // namespace hearth::tflite
