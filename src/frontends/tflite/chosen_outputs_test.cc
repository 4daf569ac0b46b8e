// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/chosen_outputs.h"

#include <array>
#include <memory>
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

// The file lists a tensor under two names, and an input and a constant as outputs.
TEST(ChosenOutputs, ATensorThatIsListedAgainStaysUnderTheWantedName) {
  const auto model = [] {
    FloatModel made({{2}}, {{2}});
    const int32_t constant = made.addConstant<float>(TensorType::FLOAT32, {2}, {1.0f, 2.0f});
    made.addOperator(BuiltinOperator::RELU, {0}, {1});
    made.setArguments({0}, {1, 1, 0, constant, 1});
    auto signature = std::make_unique<schema::SignatureDefT>();
    signature->signature_key = "named";
    for (const auto& [name, tensor] : std::vector<std::pair<const char*, uint32_t>>{
             {"first", 1}, {"second", 1}, {"in", 0}, {"constant", 2}, {"third", 1}}) {
      auto entry = std::make_unique<schema::TensorMapT>();
      entry->name = name;
      entry->tensor_index = tensor;
      signature->outputs.push_back(std::move(entry));
    }
    made.model.signature_defs.push_back(std::move(signature));
    return made;
  };
  for (const std::vector<const char*>& names :
       std::vector<std::vector<const char*>>{{"first"},
                                             {"second"},
                                             {"third"},
                                             {"second", "third"},
                                             {"first", "third"},
                                             {"in"},
                                             {"constant"}}) {
    ImportedGraph graph = import(model());
    ASSERT_EQ(graph.outputs.size(), 5u);
    const auto chosen = chooseOutputs(names, &graph);
    ASSERT_TRUE(chosen) << names[0] << ": " << chosen.error().toString();
    EXPECT_TRUE(*chosen);
    ASSERT_EQ(graph.outputs.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(graph.outputs[i].name, names[i]);
    const graph::Subgraph& main = graph.model->main();
    ASSERT_EQ(main.outputs.size(), names.size());
    for (const uint32_t output : main.outputs)
      EXPECT_EQ(main.operands[output].lifetime, graph::Lifetime::kSubgraphOutput) << names[0];
  }
}

}  // namespace
}  // namespace hearth::tflite
