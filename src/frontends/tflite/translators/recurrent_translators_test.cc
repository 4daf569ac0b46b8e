// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;

TEST(RecurrentTranslators, RnnKeepsItsState) {
  FloatModel model({{1, 4}, {3, 4}, {3, 3}, {3}}, {{1, 3}});
  const int32_t state = model.addVariable(TensorType::FLOAT32, {1, 3});
  schema::RNNOptionsT options;
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::RNN, {0, 1, 2, 3, state}, {4}, options);
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("RNN t0 t1 t2 t3 t5 4 -> % t4"));
  ASSERT_EQ(imported.states.size(), 1u);
  EXPECT_EQ(imported.states[0].input, 4u);
  EXPECT_EQ(imported.states[0].output, 1u);
  EXPECT_EQ(imported.states[0].initialValue, std::vector<uint8_t>(12, 0));
}

TEST(RecurrentTranslators, EightBitWeightsOfFloatLayersAreWidened) {
  FloatModel model({{1, 4}}, {{1, 3}});
  const int32_t weights =
      model.addConstantBytes(TensorType::INT8, {3, 4}, std::vector<uint8_t>(12), 0.5f);
  const int32_t recurrent =
      model.addConstantBytes(TensorType::INT8, {3, 3}, std::vector<uint8_t>(9), 0.25f);
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {3}, {1, 2, 3});
  const int32_t state = model.addVariable(TensorType::FLOAT32, {1, 3});
  model.addOperator(BuiltinOperator::RNN, {0, weights, recurrent, bias, state}, {1},
                    schema::RNNOptionsT());
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("DEQUANTIZE t2 -> %", "DEQUANTIZE t3 -> %",
                                                    "RNN t0 % % t4 t5 0 -> % t1"));
  const graph::Subgraph& graph = imported.model->main();
  const graph::Operand& widened = graph.operands[graph.operations[0].outputs[0]];
  EXPECT_EQ(widened.type, OperandType::kTensorFloat32);
  EXPECT_EQ(widened.dimensions, (graph::Dimensions{3, 4}));
  EXPECT_EQ(widened.scale, 0.0f);
}

TEST(RecurrentTranslators, WeightsThatAreNoConstantsAreNotWidened) {
  FloatModel model({{1, 4}}, {{1, 3}});
  const int32_t weights = model.addTensor(TensorType::INT8, {3, 4}, 0.5f);
  const int32_t recurrent =
      model.addConstantBytes(TensorType::FLOAT32, {3, 3}, std::vector<uint8_t>(36));
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {3}, {1, 2, 3});
  const int32_t state = model.addVariable(TensorType::FLOAT32, {1, 3});
  model.addOperator(BuiltinOperator::RNN, {0, weights, recurrent, bias, state}, {1},
                    schema::RNNOptionsT());
  model.setArguments({0, weights}, {1});
  EXPECT_THAT(errorOf(model), HasSubstr("only TENSOR_FLOAT32 and 8-bit weights are"));
}

TEST(RecurrentTranslators, SequencesAndSvdf) {
  FloatModel rnn({{1, 2, 4}, {3, 4}, {3, 3}, {3}}, {{1, 2, 3}});
  const int32_t state = rnn.addVariable(TensorType::FLOAT32, {1, 3});
  schema::SequenceRNNOptionsT options;
  options.time_major = true;
  rnn.addOperator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, {0, 1, 2, 3, state}, {4}, options);
  EXPECT_THAT(translate(rnn),
              ElementsAre("UNIDIRECTIONAL_SEQUENCE_RNN t0 t1 t2 t3 t5 0 1 -> t4 %"));

  FloatModel svdf({{1, 4}, {6, 4}, {6, 5}}, {{1, 3}});
  const int32_t memory = svdf.addVariable(TensorType::FLOAT32, {1, 30});
  schema::SVDFOptionsT rank;
  rank.rank = 2;
  svdf.addOperator(BuiltinOperator::SVDF, {0, 1, 2, -1, memory}, {3}, rank);
  EXPECT_THAT(translate(svdf), ElementsAre("SVDF t0 t1 t2 - t4 2 0 -> % t3"));
}

TEST(RecurrentTranslators, SvdfInIntegers) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {1, 4}, 0.5f, 3);
  model.addConstantBytes(TensorType::INT8, {6, 4}, std::vector<uint8_t>(24), 0.25f);
  model.addConstantBytes(TensorType::INT16, {6, 5}, std::vector<uint8_t>(60), 0.25f);
  const int32_t memory = model.addVariable(TensorType::INT16, {1, 30}, 0.125f);
  model.addTensor(TensorType::INT8, {1, 3}, 0.5f, -128);
  schema::SVDFOptionsT options;
  options.rank = 2;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::SVDF, {0, 1, 2, -1, memory}, {4}, options);
  model.setArguments({0}, {4});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("SVDF t0 t1 t2 - t3 2 1 -> % t4"));
  ASSERT_EQ(imported.states.size(), 1u);
  EXPECT_EQ(imported.states[0].initialValue, std::vector<uint8_t>(60, 0));
}

// The inputs of a full LSTM of three units over four values, weights first.
std::vector<int32_t> lstmInputs(ModelWriter* model, int32_t input, TensorType type) {
  const bool isFloat = type == TensorType::FLOAT32;
  const float scale = isFloat ? 0.0f : 0.5f;
  std::vector<int32_t> inputs(24, -1);
  inputs[0] = input;
  for (int i = 1; i <= 8; ++i) {
    const int32_t columns = i <= 4 ? 4 : 3;
    inputs[i] = model->addConstantBytes(
        type, {3, columns}, std::vector<uint8_t>(3 * columns * (isFloat ? 4 : 1)), scale);
  }
  for (int i = 12; i <= 15; ++i)
    inputs[i] =
        model->addConstantBytes(isFloat ? type : TensorType::INT32, {3}, std::vector<uint8_t>(12));
  inputs[18] = model->addVariable(type, {1, 3}, scale);
  inputs[19] = model->addVariable(isFloat ? type : TensorType::INT16, {1, 3}, scale);
  return inputs;
}

TEST(RecurrentTranslators, FloatSequenceLstm) {
  FloatModel model({{1, 2, 4}}, {{1, 2, 3}});
  schema::UnidirectionalSequenceLSTMOptionsT options;
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  options.cell_clip = 10.0f;
  model.addOperator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM,
                    lstmInputs(&model, 0, TensorType::FLOAT32), {1}, options);
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("UNIDIRECTIONAL_SEQUENCE_LSTM t0 t2 t3 t4 t5 t6 t7 t8 t9 - - - t10 t11 "
                          "t12 t13 - - t14 t15 4 10f 0f false - - - - -> t1 % %"));
  EXPECT_EQ(imported.states.size(), 2u);
}

TEST(RecurrentTranslators, QuantisedSequenceLstm) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {1, 2, 4}, 0.5f);
  model.addTensor(TensorType::INT8, {1, 2, 3}, 0.25f, 7);
  schema::UnidirectionalSequenceLSTMOptionsT options;
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM,
                    lstmInputs(&model, 0, TensorType::INT8), {1}, options);
  model.setArguments({0}, {1});
  const ImportedGraph imported = import(model);
  const std::vector<std::string> lines = linesOf(*imported.model);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith("t14 t15 - - - - 0f 0f false 0f 0f 0f 0f 0.25f 0 0 0 0 7"
                                          " -> t1 % %"));
}

TEST(RecurrentTranslators, Lstm) {
  FloatModel model({{1, 4}}, {{1, 3}});
  schema::LSTMOptionsT options;
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::LSTM, lstmInputs(&model, 0, TensorType::FLOAT32), {1},
                    options);
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("LSTM t0 t2 t3 t4 t5 t6 t7 t8 t9 - - - t10 t11 t12 t13 - - t14 t15 4 0f "
                          "0f - - - - -> % % % t1"));
  EXPECT_EQ(main.operands[main.operations.at(0).outputs[0]].dimensions, (graph::Dimensions{1, 12}));

  ModelWriter quantised;
  quantised.addTensor(TensorType::INT8, {1, 4}, 0.5f);
  quantised.addTensor(TensorType::INT8, {1, 3}, 0.5f);
  quantised.addOperator(BuiltinOperator::LSTM, lstmInputs(&quantised, 0, TensorType::INT8), {1},
                        options);
  quantised.setArguments({0}, {1});
  const ImportedGraph second = import(quantised);
  const std::vector<std::string> lines = linesOf(*second.model);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith("- - - - 0f 0f 0f 0f 0f 0f 0 0.5f -> % % t1"));
  const graph::Subgraph& graph = second.model->main();
  EXPECT_EQ(graph.operands[graph.operations[0].inputs[1]].type, OperandType::kTensorQuant8Symm);
}

TEST(RecurrentTranslators, BasicLstmIsCutIntoGates) {
  ModelWriter model;
  model.addTensor(TensorType::UINT8, {1, 2}, 0.5f, 128);
  const int32_t state = model.addTensor(TensorType::UINT8, {1, 3}, 0.5f, 128);
  const int32_t weights =
      model.addConstantBytes(TensorType::UINT8, {12, 5}, std::vector<uint8_t>(60), 0.25f, 128);
  const int32_t bias = model.addConstantBytes(TensorType::INT32, {12}, std::vector<uint8_t>(48));
  const int32_t cell = model.addTensor(TensorType::INT16, {1, 3}, 1.0f / 2048);
  std::vector<int32_t> outputs = {model.addTensor(TensorType::UINT8, {1, 3}, 0.5f, 128),
                                  model.addTensor(TensorType::INT16, {1, 3}, 1.0f / 2048),
                                  model.addTensor(TensorType::UINT8, {1, 5}, 0.5f, 128),
                                  model.addTensor(TensorType::INT16, {1, 12}, 1.0f / 2048)};
  schema::LSTMOptionsT options;
  options.kernel_type = schema::LSTMKernelType::BASIC;
  model.addOperator(BuiltinOperator::LSTM, {0, state, weights, bias, cell}, outputs, options);
  model.setArguments({0, state, cell}, {outputs[0], outputs[1]});
  const std::vector<std::string> lines = translate(model);
  ASSERT_EQ(lines.size(), 13u);
  EXPECT_EQ(lines[0], "SLICE t2 {0,3} {3,2} -> %");
  EXPECT_EQ(lines[1], "SLICE t2 {6,3} {3,2} -> %");
  EXPECT_EQ(lines[7], "SLICE t2 {9,0} {3,3} -> %");
  EXPECT_EQ(lines[12], "QUANTIZED_16BIT_LSTM t0 % % % % % % % % % % % % t4 t1 -> t6 t5");
}

TEST(RecurrentTranslators, Bidirectional) {
  FloatModel model({{1, 2, 4}, {3, 4}, {3, 3}, {3}}, {{1, 2, 3}, {1, 2, 3}});
  const int32_t forward = model.addVariable(TensorType::FLOAT32, {1, 3});
  const int32_t backward = model.addVariable(TensorType::FLOAT32, {1, 3});
  model.addOperator(BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN,
                    {0, 1, 2, 3, forward, 1, 2, 3, backward, -1, -1, -1}, {4, 5},
                    schema::BidirectionalSequenceRNNOptionsT());
  EXPECT_THAT(translate(model),
              ElementsAre("BIDIRECTIONAL_SEQUENCE_RNN t0 t1 t2 t3 t6 t1 t2 t3 t7 - - - 0 false "
                          "false -> t4 t5 % %"));

  FloatModel lstm({{1, 2, 4}}, {{1, 2, 6}});
  const std::vector<int32_t> one = lstmInputs(&lstm, 0, TensorType::FLOAT32);
  const std::vector<int32_t> two = lstmInputs(&lstm, 0, TensorType::FLOAT32);
  std::vector<int32_t> inputs(one.begin(), one.begin() + 18);
  inputs.insert(inputs.end(), two.begin() + 1, two.begin() + 18);
  inputs.insert(inputs.end(), {one[18], one[19], two[18], two[19]});
  inputs.resize(48, -1);
  schema::BidirectionalSequenceLSTMOptionsT options;
  options.merge_outputs = true;
  lstm.addOperator(BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, inputs, {1}, options);
  const ImportedGraph imported = import(lstm);
  const std::vector<std::string> lines = linesOf(*imported.model);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith("0 0f 0f true true - - - - - - - - -> t1 % % % %"));
  EXPECT_EQ(imported.states.size(), 4u);
}

}  // namespace
}  // namespace hearth::tflite
