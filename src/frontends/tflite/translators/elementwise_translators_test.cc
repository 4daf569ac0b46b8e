// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"
#include "ops/operation.h"

namespace hearth::tflite {
namespace {

TEST(ElementwiseTranslators, Arithmetic) {
  FloatModel model({{1, 4}, {1, 4}}, {{1, 4}, {1, 4}, {1, 4}, {1, 4}});
  schema::AddOptionsT add;
  add.fused_activation_function = schema::ActivationFunctionType::RELU6;
  model.addOperator(BuiltinOperator::ADD, {0, 1}, {2}, add);
  model.addOperator(BuiltinOperator::SUB, {0, 1}, {3});  // without options
  model.addOperator(BuiltinOperator::MUL, {0, 1}, {4}, schema::MulOptionsT());
  model.addOperator(BuiltinOperator::DIV, {0, 1}, {5}, schema::DivOptionsT());
  EXPECT_THAT(translate(model), ElementsAre("ADD t0 t1 3 -> t2", "SUB t0 t1 0 -> t3",
                                            "MUL t0 t1 0 -> t4", "DIV t0 t1 0 -> t5"));
}

// As in TensorFlow Lite's own add_quantized.bin, whose sum in the middle is FLOAT32 in the file.
TEST(ElementwiseTranslators, ArithmeticSaysTheTypeOfItsResult) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::UINT8, {4}, 0.5f, 3);
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {4}, 0.25f, 7);
  const int32_t output = model.addTensor(TensorType::UINT8, {4}, 0.5f, 3);
  model.addOperator(BuiltinOperator::ADD, {input, input}, {sum}, schema::AddOptionsT());
  model.addOperator(BuiltinOperator::SUB, {sum, input}, {output}, schema::SubOptionsT());
  model.setArguments({input}, {output});
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  ASSERT_FALSE(main.operations.empty());
  const graph::Operand& between = main.operands[main.operations[0].outputs[0]];
  EXPECT_EQ(between.type, graph::OperandType::kTensorQuant8Asymm);
  EXPECT_EQ(between.scale, 0.25f);
  EXPECT_EQ(between.zeroPoint, 7);
  // Programs see an output with the type of the file.
  model.setArguments({input}, {sum, output});
  EXPECT_EQ(import(model).outputs[0].type, graph::OperandType::kTensorFloat32);
}

TEST(ElementwiseTranslators, PlainOperations) {
  const std::tuple<BuiltinOperator, size_t, std::string> cases[] = {
      {BuiltinOperator::ABS, 1, "ABS"},         {BuiltinOperator::EXP, 1, "EXP"},
      {BuiltinOperator::FLOOR, 1, "FLOOR"},     {BuiltinOperator::HARD_SWISH, 1, "HARD_SWISH"},
      {BuiltinOperator::LOG, 1, "LOG"},         {BuiltinOperator::LOGISTIC, 1, "LOGISTIC"},
      {BuiltinOperator::NEG, 1, "NEG"},         {BuiltinOperator::RELU, 1, "RELU"},
      {BuiltinOperator::RELU6, 1, "RELU6"},     {BuiltinOperator::RELU_N1_TO_1, 1, "RELU1"},
      {BuiltinOperator::RSQRT, 1, "RSQRT"},     {BuiltinOperator::SIN, 1, "SIN"},
      {BuiltinOperator::SQRT, 1, "SQRT"},       {BuiltinOperator::TANH, 1, "TANH"},
      {BuiltinOperator::MAXIMUM, 2, "MAXIMUM"}, {BuiltinOperator::MINIMUM, 2, "MINIMUM"},
      {BuiltinOperator::POW, 2, "POW"},         {BuiltinOperator::PRELU, 2, "PRELU"}};
  for (const auto& [code, inputs, name] : cases) {
    FloatModel model(std::vector<ModelWriter::Shape>(inputs, {1, 4}), {{1, 4}});
    model.addOperator(code, model.in, model.out);
    const std::string arguments = inputs == 1 ? " t0 -> t1" : " t0 t1 -> t2";
    EXPECT_THAT(translate(model), ElementsAre(name + arguments));
    model.subgraph().operators[0]->inputs.pop_back();
    EXPECT_THAT(errorOf(model), HasSubstr("lacks its input")) << name;
  }
}

TEST(ElementwiseTranslators, ComparisonsLogicAndSelect) {
  const std::pair<BuiltinOperator, std::string> comparisons[] = {
      {BuiltinOperator::EQUAL, "EQUAL"},         {BuiltinOperator::GREATER, "GREATER"},
      {BuiltinOperator::LESS, "LESS"},           {BuiltinOperator::GREATER_EQUAL, "GREATER_EQUAL"},
      {BuiltinOperator::NOT_EQUAL, "NOT_EQUAL"}, {BuiltinOperator::LESS_EQUAL, "LESS_EQUAL"}};
  for (const auto& [code, name] : comparisons) {
    FloatModel model({{4}, {4}}, {});
    const int32_t output = model.addTensor(TensorType::BOOL, {4});
    model.addOperator(code, {0, 1}, {output});
    model.setArguments({0, 1}, {output});
    EXPECT_THAT(translate(model), ElementsAre(name + " t0 t1 -> t2"));
  }
  ModelWriter model;
  for (int i = 0; i < 5; ++i) model.addTensor(TensorType::BOOL, {4});
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::FLOAT32, {4});
  model.addOperator(BuiltinOperator::LOGICAL_AND, {0, 1}, {2});
  model.addOperator(BuiltinOperator::LOGICAL_OR, {0, 2}, {3});
  model.addOperator(BuiltinOperator::LOGICAL_NOT, {3}, {4});
  model.addOperator(BuiltinOperator::SELECT, {4, 5, 6}, {7});
  model.setArguments({0, 1, 5, 6}, {7});
  EXPECT_THAT(translate(model), ElementsAre("LOGICAL_AND t0 t1 -> t2", "LOGICAL_OR t0 t2 -> t3",
                                            "LOGICAL_NOT t3 -> t4", "SELECT t4 t5 t6 -> t7"));
}

TEST(ElementwiseTranslators, SelectV2RescalesWhatDiffersFromItsOutput) {
  ModelWriter model;
  model.addTensor(TensorType::BOOL, {4});
  model.addTensor(TensorType::INT8, {4}, 0.5f, 3);
  model.addTensor(TensorType::INT8, {1}, 0.25f);
  model.addTensor(TensorType::INT8, {4}, 0.25f);
  model.addOperator(BuiltinOperator::SELECT_V2, {0, 1, 2}, {3});
  model.setArguments({0, 1, 2}, {3});
  EXPECT_THAT(translate(model), ElementsAre("QUANTIZE t1 -> %", "SELECT_V2 t0 % t2 -> t3"));
}

TEST(ElementwiseTranslators, CosAndElu) {
  FloatModel cos({{2}}, {{2}});
  cos.addOperator(BuiltinOperator::COS, {0}, {1});
  EXPECT_THAT(translate(cos), ElementsAre("COS t0 -> t1"));
  FloatModel elu({{2}}, {{2}});
  elu.addOperator(BuiltinOperator::ELU, {0}, {1});
  EXPECT_THAT(translate(elu), ElementsAre("ELU t0 1f -> t1"));
}

TEST(ElementwiseTranslators, SoftmaxAndLogSoftmax) {
  FloatModel model({{2, 3}}, {{2, 3}, {2, 3}});
  schema::SoftmaxOptionsT options;
  options.beta = 0.5f;
  model.addOperator(BuiltinOperator::SOFTMAX, {0}, {1}, options);
  model.addOperator(BuiltinOperator::LOG_SOFTMAX, {0}, {2});
  EXPECT_THAT(translate(model), ElementsAre("SOFTMAX t0 0.5f -> t1", "LOG_SOFTMAX t0 1f -1 -> t2"));
}

// Scale and zero point carry the slope, even a negative one or zero.
TEST(ElementwiseTranslators, LeakyReluSlopes) {
  for (const TensorType type :
       {TensorType::FLOAT32, TensorType::INT8, TensorType::UINT8, TensorType::INT16}) {
    for (const float alpha : {0.25f, -0.5f, 0.0f}) {
      ModelWriter model;
      const float scale = type == TensorType::FLOAT32 ? 0.0f : 0.5f;
      model.addTensor(type, {4}, scale);
      model.addTensor(type, {4}, scale);
      schema::LeakyReluOptionsT options;
      options.alpha = alpha;
      model.addOperator(BuiltinOperator::LEAKY_RELU, {0}, {1}, options);
      model.setArguments({0}, {1});
      const ImportedGraph imported = import(model);
      EXPECT_THAT(linesOf(*imported.model), ElementsAre("PRELU t0 % -> t1"));
      const graph::Operand& slope =
          imported.model->main().operands[imported.model->main().operations.at(0).inputs.at(1)];
      const float value =
          type == TensorType::FLOAT32 ? valueOf<float>(*imported.model, slope)
          : type == TensorType::INT16
              ? valueOf<int16_t>(*imported.model, slope) * slope.scale
              : (valueOf<int8_t>(*imported.model, slope) - slope.zeroPoint) * slope.scale;
      EXPECT_EQ(value, alpha);
    }
  }
  FloatModel model({{4}}, {{4}});
  schema::LeakyReluOptionsT options;
  options.alpha = NAN;
  model.addOperator(BuiltinOperator::LEAKY_RELU, {0}, {1}, options);
  EXPECT_THAT(errorOf(model), HasSubstr("slope"));
}

TEST(ElementwiseTranslators, SquaredDifference) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {4}, 0.5f, 10);
  model.addTensor(TensorType::INT8, {4}, 0.25f, -128);
  model.addTensor(TensorType::INT8, {4}, 2.0f, -128);
  model.addOperator(BuiltinOperator::SQUARED_DIFFERENCE, {0, 1}, {2});
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(linesOf(*import(model).model), ElementsAre("SQUARED_DIFFERENCE t0 t1 -> t2"));
}

TEST(ElementwiseTranslators, Bits) {
  ModelWriter model;
  model.addTensor(TensorType::INT32, {4});
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::INT32, {4});
  model.addTensor(TensorType::INT32, {4});
  model.addOperator(BuiltinOperator::BITWISE_XOR, {0, 1}, {2});
  model.addOperator(BuiltinOperator::RIGHT_SHIFT, {2, 1}, {3});
  model.setArguments({0, 1}, {3});
  EXPECT_THAT(linesOf(*import(model).model),
              ElementsAre("BITWISE_XOR t0 t1 -> t2", "RIGHT_SHIFT t2 t1 -> t3"));
}

TEST(ElementwiseTranslators, ComplexNumbers) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1, 512});
  const int32_t lengths = model.addConstant<int32_t>(TensorType::INT32, {2}, {1, 512});
  model.addTensor(TensorType::COMPLEX64, {1, 257});
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::FLOAT32, {1, 257});
  model.addOperator(BuiltinOperator::RFFT2D, {0, lengths}, {2});
  model.addOperator(BuiltinOperator::COMPLEX_ABS, {2}, {3});
  model.addOperator(BuiltinOperator::REAL, {2}, {4});
  model.addOperator(BuiltinOperator::IMAG, {2}, {5});
  model.setArguments({0}, {3, 4, 5});
  EXPECT_THAT(
      linesOf(*import(model).model),
      ElementsAre("RFFT2D t0 t1 -> t2", "COMPLEX_ABS t2 -> t3", "REAL t2 -> t4", "IMAG t2 -> t5"));
}

TEST(ElementwiseTranslators, ComplexArithmetic) {
  ModelWriter model;
  model.addTensor(TensorType::COMPLEX64, {2, 3});
  model.addTensor(TensorType::FLOAT32, {3});
  model.addTensor(TensorType::COMPLEX64, {3});
  for (int i = 0; i < 2; ++i) model.addTensor(TensorType::COMPLEX64, {2, 3});
  model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::CAST, {1}, {2});
  model.addOperator(BuiltinOperator::MUL, {0, 2}, {3});
  model.addOperator(BuiltinOperator::SUB, {3, 0}, {4});
  model.addOperator(BuiltinOperator::CAST, {4}, {5});
  model.setArguments({0, 1}, {5});
  const auto imported = import(model);
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("CAST t1 -> t2", "MUL t0 t2 0 -> t3",
                                                    "SUB t3 t0 0 -> t4", "CAST t4 -> t5"));
  EXPECT_TRUE(ops::validateOperations(*imported.model));
}

TEST(ElementwiseTranslators, UnsignedProductsAreThoseOfSignedNumbers) {
  ModelWriter model;
  for (int i = 0; i < 3; ++i) model.addTensor(TensorType::UINT32, {4});
  model.addOperator(BuiltinOperator::MUL, {0, 1}, {2}, schema::MulOptionsT());
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(translate(model), ElementsAre("BITCAST t0 -> %", "BITCAST t1 -> %", "MUL % % 0 -> %",
                                            "BITCAST % -> t2"));
}

}  // namespace
}  // namespace hearth::tflite
