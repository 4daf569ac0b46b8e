// SPDX-License-Identifier: Apache-2.0
// Each family of translators on hand-made models; the expected lines are NNAPI's arguments.
#include "frontends/tflite/model_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <format>

#include "base/format.h"
#include "frontends/tflite/model_file.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using schema::BuiltinOperator;
using schema::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
T valueOf(const graph::Model& model, const graph::Operand& operand, size_t index = 0) {
  T value;
  std::memcpy(&value, model.constantData(operand) + index * sizeof(T), sizeof(T));
  return value;
}

// "3" and "0.5f" for scalars, "true", "{1,2}" for INT32 constants, the name of a named operand,
// "-" for an omitted one, "%" for what a translator added, "#1" for a subgraph.
std::string textOf(const graph::Model& model, const graph::Operand& operand) {
  if (!operand.hasValue()) return "-";
  if (operand.lifetime == graph::Lifetime::kSubgraph)
    return base::formatText("#{}", operand.subgraphIndex);
  if (operand.type == OperandType::kInt32)
    return base::formatText("{}", valueOf<int32_t>(model, operand));
  if (operand.type == OperandType::kFloat32)
    return base::formatText("{}f", valueOf<float>(model, operand));
  if (operand.type == OperandType::kBool) return valueOf<bool>(model, operand) ? "true" : "false";
  if (!operand.name.empty()) return operand.name;
  if (operand.type != OperandType::kTensorInt32 || !operand.isConstant()) return "%";
  std::string text = "{";
  for (size_t i = 0; i < operand.location.length / 4; ++i)
    text += base::formatText("{}{}", i == 0 ? "" : ",", valueOf<int32_t>(model, operand, i));
  return text + "}";
}

std::vector<std::string> linesOf(const graph::Model& model, size_t subgraph = 0) {
  const graph::Subgraph& graph = model.subgraphs[subgraph];
  std::vector<std::string> lines;
  for (const graph::Operation& operation : graph.operations) {
    std::string line = graph::nameOf(operation.type);
    for (const uint32_t input : operation.inputs)
      line += " " + textOf(model, graph.operands[input]);
    line += " ->";
    for (const uint32_t output : operation.outputs)
      line += " " + textOf(model, graph.operands[output]);
    lines.push_back(line);
  }
  return lines;
}

Result<ImportedGraph> tryImport(const ModelWriter& writer) {
  HEARTH_ASSIGN(const auto file, ModelFile::fromPool(poolOf(writer.write())));
  return file->importSubgraph(0);
}

ImportedGraph import(const ModelWriter& writer) {
  auto imported = tryImport(writer);
  if (!imported) {
    ADD_FAILURE() << imported.error().toString();
    return {.model = std::make_shared<graph::Model>(
                graph::Model{.subgraphs = std::vector<graph::Subgraph>(3)})};
  }
  return std::move(*imported);
}

std::vector<std::string> translate(const ModelWriter& writer) {
  return linesOf(*import(writer).model);
}

std::string errorOf(const ModelWriter& writer) {
  const auto imported = tryImport(writer);
  if (imported) return "imported";
  return imported.error().message();
}

// A model of one operation between float tensors of the given shapes: inputs t0, t1, …, then the
// outputs.
struct FloatModel : ModelWriter {
  FloatModel(std::vector<Shape> inputs, std::vector<Shape> outputs) {
    for (Shape& shape : inputs) in.push_back(addTensor(TensorType::FLOAT32, shape));
    for (Shape& shape : outputs) out.push_back(addTensor(TensorType::FLOAT32, shape));
    setArguments(in, out);
  }
  std::vector<int32_t> in, out;
};

TEST(ConvTranslators, Conv2dDilatedWithoutBias) {
  FloatModel model({{1, 8, 8, 4}, {2, 3, 3, 4}}, {{1, 4, 4, 2}});
  schema::Conv2DOptionsT options;
  options.padding = schema::Padding::VALID;
  options.stride_w = 1;
  options.stride_h = 2;
  options.dilation_w_factor = 2;
  options.dilation_h_factor = 3;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, -1}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("CONV_2D t0 t1 - 2 1 2 1 false 2 3 -> t2"));
}

TEST(ConvTranslators, GroupedConv2d) {
  FloatModel model({{1, 8, 8, 4}, {6, 3, 3, 2}, {6}}, {{1, 8, 8, 6}});
  schema::Conv2DOptionsT options;
  options.stride_w = options.stride_h = 1;
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("GROUPED_CONV_2D t0 t1 t2 1 1 1 2 0 false -> t3"));
  options.dilation_w_factor = 2;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("grouped and dilated"));
}

TEST(ConvTranslators, DepthMultiplierFromShapes) {
  FloatModel model({{1, 8, 8, 4}, {1, 3, 3, 12}, {12}}, {{1, 8, 8, 12}});
  schema::DepthwiseConv2DOptionsT options;
  options.stride_w = options.stride_h = 1;
  model.addOperator(BuiltinOperator::DEPTHWISE_CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("DEPTHWISE_CONV_2D t0 t1 t2 1 1 1 3 0 -> t3"));
}

TEST(ConvTranslators, FusedTanhIsAnOperation) {
  FloatModel model({{1, 8, 8, 4}, {2, 3, 3, 4}, {2}}, {{1, 8, 8, 2}});
  schema::Conv2DOptionsT options;
  options.stride_w = options.stride_h = 1;
  options.fused_activation_function = schema::ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::CONV_2D, {0, 1, 2}, {3}, options);
  EXPECT_THAT(translate(model), ElementsAre("CONV_2D t0 t1 t2 1 1 1 0 -> %", "TANH % -> t3"));
  options.fused_activation_function = schema::ActivationFunctionType::SIGN_BIT;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("SIGN_BIT"));
}

TEST(ConvTranslators, TransposeConv) {
  FloatModel model({{1, 4, 4, 3}, {2, 3, 3, 3}}, {{1, 8, 8, 2}});
  const int32_t shape = model.ints({1, 8, 8, 2});
  schema::TransposeConvOptionsT options;
  options.stride_w = 2;
  options.stride_h = 3;
  model.addOperator(BuiltinOperator::TRANSPOSE_CONV, {shape, 1, 0}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("TRANSPOSE_CONV_2D t0 t1 - t3 1 2 3 0 false -> t2"));
}

TEST(ConvTranslators, Pooling) {
  schema::Pool2DOptionsT options;
  options.padding = schema::Padding::VALID;
  options.stride_w = 1;
  options.stride_h = 2;
  options.filter_width = 3;
  options.filter_height = 4;
  options.fused_activation_function = schema::ActivationFunctionType::RELU_N1_TO_1;
  const std::pair<BuiltinOperator, std::string> cases[] = {
      {BuiltinOperator::AVERAGE_POOL_2D, "AVERAGE_POOL_2D"},
      {BuiltinOperator::MAX_POOL_2D, "MAX_POOL_2D"},
      {BuiltinOperator::L2_POOL_2D, "L2_POOL_2D"}};
  for (const auto& [code, name] : cases) {
    FloatModel model({{1, 8, 8, 4}}, {{1, 3, 6, 4}});
    model.addOperator(code, {0}, {1}, options);
    EXPECT_THAT(translate(model), ElementsAre(name + " t0 2 1 2 3 4 2 -> t1"));
  }
}

TEST(ConvTranslators, BiasScalesOfSharedBias) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT8, {1, 4}, 0.5f, 3);
  const int32_t bias = model.addConstant<int32_t>(TensorType::INT32, {2}, {1, 2}, 0.9f);
  std::vector<int32_t> outputs;
  for (const float scale : {0.25f, 0.125f}) {
    const int32_t weights =
        model.addConstant<int8_t>(TensorType::INT8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, scale);
    outputs.push_back(model.addTensor(TensorType::INT8, {1, 2}, 1.0f));
    model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, bias}, {outputs.back()},
                      schema::FullyConnectedOptionsT());
  }
  model.setArguments({input}, outputs);
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  ASSERT_EQ(main.operations.size(), 2u);
  const auto bias0 = main.operands[main.operations[0].inputs[2]];
  const auto bias1 = main.operands[main.operations[1].inputs[2]];
  EXPECT_EQ(bias0.scale, 0.125f);
  EXPECT_EQ(bias1.scale, 0.0625f);
  EXPECT_EQ(bias0.location.offset, bias1.location.offset);
  EXPECT_EQ(bias0.lifetime, graph::Lifetime::kConstantReference);
}

TEST(ConvTranslators, PerChannelWeights) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT8, {1, 4}, 0.5f, 3);
  const int32_t weights =
      model.addConstant<int8_t>(TensorType::INT8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, 1.0f);
  model.tensor(weights).quantization->scale = {0.5f, 0.25f};
  model.tensor(weights).quantization->zero_point = {0, 0};
  const int32_t bias = model.addConstant<int32_t>(TensorType::INT32, {2}, {1, 2}, 0.9f);
  const int32_t output = model.addTensor(TensorType::INT8, {1, 2}, 1.0f);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {input, weights, bias}, {output},
                    schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  const ImportedGraph imported = import(model);
  const graph::Subgraph& main = imported.model->main();
  ASSERT_EQ(main.operations.size(), 1u);
  const graph::Operand& operand = main.operands[main.operations[0].inputs[1]];
  EXPECT_EQ(operand.type, OperandType::kTensorQuant8SymmPerChannel);
  EXPECT_EQ(operand.perChannel.channelDim, 0u);
  EXPECT_THAT(operand.perChannel.scales, ElementsAre(0.5f, 0.25f));
  EXPECT_EQ(main.operands[main.operations[0].inputs[2]].scale, 0.0f);

  model.tensor(weights).quantization->zero_point = {0, 1};
  EXPECT_THAT(errorOf(model), HasSubstr("zero points other than 0"));
  model.tensor(weights).quantization->scale = {0.5f, 0.25f, 1.0f};
  EXPECT_THAT(errorOf(model), HasSubstr("3 scales for 2 channels"));
}

TEST(ConvTranslators, MatrixProductsAndNormalisation) {
  FloatModel matmul({{2, 3, 4}, {2, 5, 4}}, {{2, 3, 5}});
  schema::BatchMatMulOptionsT options;
  options.adj_y = true;
  matmul.addOperator(BuiltinOperator::BATCH_MATMUL, {0, 1}, {2}, options);
  EXPECT_THAT(translate(matmul), ElementsAre("BATCH_MATMUL t0 t1 false true -> t2"));

  FloatModel norm({{1, 4}}, {{1, 4}});
  schema::L2NormOptionsT l2;
  l2.fused_activation_function = schema::ActivationFunctionType::RELU;
  norm.addOperator(BuiltinOperator::L2_NORMALIZATION, {0}, {1}, l2);
  EXPECT_THAT(translate(norm), ElementsAre("L2_NORMALIZATION t0 -> %", "RELU % -> t1"));

  FloatModel response({{1, 4, 4, 8}}, {{1, 4, 4, 8}});
  schema::LocalResponseNormalizationOptionsT lrn;
  lrn.radius = 5;
  lrn.bias = 1;
  lrn.alpha = 0.25f;
  lrn.beta = 0.5f;
  response.addOperator(BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, {0}, {1}, lrn);
  EXPECT_THAT(translate(response),
              ElementsAre("LOCAL_RESPONSE_NORMALIZATION t0 5 1f 0.25f 0.5f -> t1"));
}

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

// The slope comes out of scale and zero point, also where it is negative or zero.
TEST(ElementwiseTranslators, LeakyReluSlopes) {
  for (const TensorType type : {TensorType::FLOAT32, TensorType::INT8, TensorType::UINT8}) {
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
          type == TensorType::FLOAT32
              ? valueOf<float>(*imported.model, slope)
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

// The difference holds every value that two quantised inputs can have.
TEST(ElementwiseTranslators, SquaredDifference) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {4}, 0.5f, 10);
  model.addTensor(TensorType::INT8, {4}, 0.25f, -128);
  model.addTensor(TensorType::INT8, {4}, 2.0f, -128);
  model.addOperator(BuiltinOperator::SQUARED_DIFFERENCE, {0, 1}, {2});
  model.setArguments({0, 1}, {2});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("SUB t0 t1 0 -> %", "MUL % % 0 -> t2"));
  const graph::Operand& difference =
      imported.model->main().operands[imported.model->main().operations.at(0).outputs.at(0)];
  const auto real = [&](int q) {
    return (q - difference.zeroPoint) * difference.scale;
  };
  EXPECT_NEAR(real(-128), (-128 - 10) * 0.5 - 255 * 0.25, 0.4);
  EXPECT_NEAR(real(127), (127 - 10) * 0.5, 0.4);
}

TEST(QuantizationTranslators, RequantisationGoesThroughFloats) {
  ModelWriter model;
  model.addTensor(TensorType::UINT8, {4}, 0.5f, 128);
  model.addTensor(TensorType::INT8, {4}, 0.5f, 0);
  model.addTensor(TensorType::FLOAT32, {4});
  model.addTensor(TensorType::INT8, {4}, 0.25f, 1);
  model.addOperator(BuiltinOperator::QUANTIZE, {0}, {1});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {1}, {2});
  model.addOperator(BuiltinOperator::QUANTIZE, {2}, {3});
  model.setArguments({0}, {3});
  EXPECT_THAT(translate(model), ElementsAre("DEQUANTIZE t0 -> %", "QUANTIZE % -> t1",
                                            "DEQUANTIZE t1 -> t2", "QUANTIZE t2 -> t3"));
}

TEST(QuantizationTranslators, Casts) {
  ModelWriter model;
  model.addConstant<uint16_t>(TensorType::FLOAT16, {2}, {0x3C00, 0x4000});
  model.addTensor(TensorType::FLOAT32, {2});
  model.addTensor(TensorType::INT32, {2});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {0}, {1});
  model.addOperator(BuiltinOperator::CAST, {1}, {2}, schema::CastOptionsT());
  model.setArguments({}, {2});
  EXPECT_THAT(translate(model), ElementsAre("CAST t0 -> t1", "CAST t1 -> t2"));
}

std::unique_ptr<schema::DimensionMetadataT> storedDimension(int32_t size) {
  auto metadata = std::make_unique<schema::DimensionMetadataT>();
  metadata->dense_size = size;
  return metadata;
}

std::unique_ptr<schema::DimensionMetadataT> indexedDimension(std::vector<uint8_t> segments,
                                                             std::vector<uint8_t> indices) {
  auto metadata = std::make_unique<schema::DimensionMetadataT>();
  metadata->format = schema::DimensionType::SPARSE_CSR;
  schema::Uint8VectorT first;
  first.values = std::move(segments);
  metadata->array_segments.Set(std::move(first));
  schema::Uint8VectorT second;
  second.values = std::move(indices);
  metadata->array_indices.Set(std::move(second));
  return metadata;
}

// Two rows of three, of which [0][2], [1][0] and [1][1] are stored.
ModelWriter sparseModel() {
  ModelWriter model;
  const int32_t sparse = model.addConstant<float>(TensorType::FLOAT32, {2, 3}, {1, 2, 3});
  auto sparsity = std::make_unique<schema::SparsityParametersT>();
  sparsity->traversal_order = {0, 1};
  sparsity->dim_metadata.push_back(storedDimension(2));
  sparsity->dim_metadata.push_back(indexedDimension({0, 1, 3}, {2, 0, 1}));
  model.tensor(sparse).sparsity = std::move(sparsity);
  const int32_t dense = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::DENSIFY, {sparse}, {dense});
  model.addOperator(BuiltinOperator::RELU, {dense}, {output});
  model.setArguments({}, {output});
  return model;
}

template <typename T>
std::vector<T> firstArgument(const ImportedGraph& imported) {
  const graph::Subgraph& main = imported.model->main();
  const graph::Operand& operand = main.operands[main.operations.at(0).inputs.at(0)];
  std::vector<T> values(operand.location.length / sizeof(T));
  std::memcpy(values.data(), imported.model->constantData(operand), operand.location.length);
  return values;
}

TEST(QuantizationTranslators, SparseConstantsBecomeDense) {
  const ImportedGraph imported = import(sparseModel());
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("RELU t1 -> t2"));
  EXPECT_THAT(firstArgument<float>(imported), ElementsAre(0, 0, 1, 2, 3, 0));
}

// Columns of blocks of 2x2: the block at rows 2 and 3, columns 0 and 1.
TEST(QuantizationTranslators, SparseBlocks) {
  ModelWriter model;
  const int32_t sparse = model.addConstant<int8_t>(TensorType::INT8, {4, 4}, {1, 2, 3, 4}, 0.5f);
  auto sparsity = std::make_unique<schema::SparsityParametersT>();
  sparsity->traversal_order = {0, 1, 2, 3};
  sparsity->block_map = {0, 1};
  sparsity->dim_metadata.push_back(storedDimension(2));
  sparsity->dim_metadata.push_back(indexedDimension({0, 0, 1}, {0}));
  sparsity->dim_metadata.push_back(storedDimension(2));
  sparsity->dim_metadata.push_back(storedDimension(2));
  model.tensor(sparse).sparsity = std::move(sparsity);
  const int32_t dense = model.addTensor(TensorType::INT8, {4, 4}, 0.5f);
  const int32_t output = model.addTensor(TensorType::INT8, {4, 4}, 0.5f);
  model.addOperator(BuiltinOperator::DENSIFY, {sparse}, {dense});
  model.addOperator(BuiltinOperator::RELU, {dense}, {output});
  model.setArguments({}, {output});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(firstArgument<int8_t>(imported),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0));
}

TEST(QuantizationTranslators, WrongSparseConstants) {
  const auto edited = [](auto edit) {
    ModelWriter model = sparseModel();
    edit(*model.tensor(0).sparsity);
    return errorOf(model);
  };
  using Sparsity = schema::SparsityParametersT;
  const auto rows = [](Sparsity& s) {
    return s.dim_metadata[1]->array_segments.AsUint8Vector();
  };
  const auto columns = [](Sparsity& s) {
    return s.dim_metadata[1]->array_indices.AsUint8Vector();
  };
  EXPECT_THAT(edited([](Sparsity& s) { s.traversal_order = {0}; }), HasSubstr("differ in number"));
  EXPECT_THAT(edited([](Sparsity& s) { s.traversal_order = {0, 0}; }), HasSubstr("twice"));
  EXPECT_THAT(edited([](Sparsity& s) { s.traversal_order = {0, -1}; }), HasSubstr("not exist"));
  EXPECT_THAT(edited([](Sparsity& s) { s.dim_metadata[0]->dense_size = 1 << 30; }),
              HasSubstr("size of a stored dimension"));
  EXPECT_THAT(edited([&](Sparsity& s) { rows(s)->values = {0, 1}; }), HasSubstr("few segments"));
  EXPECT_THAT(edited([&](Sparsity& s) { rows(s)->values = {0, 1, 200}; }), HasSubstr("an index"));
  EXPECT_THAT(edited([&](Sparsity& s) { columns(s)->values = {3, 0, 1}; }), HasSubstr("an index"));
  EXPECT_THAT(edited([&](Sparsity& s) { columns(s)->values = {2, 1, 1}; }), HasSubstr("an index"));
  EXPECT_THAT(edited([&](Sparsity& s) {
                rows(s)->values = {0, 3, 3};
                columns(s)->values = {0, 1, 2};
              }),
              "imported");
  ModelWriter large = sparseModel();
  for (const int32_t tensor : {0, 1, 2}) large.tensor(tensor).shape = {1 << 20, 1 << 14};
  EXPECT_THAT(errorOf(large), HasSubstr("times its"));
  // Without DENSIFY in between.
  ModelWriter used = sparseModel();
  used.subgraph().operators[1]->inputs = {0};
  EXPECT_EQ(errorOf(used), "imported");
}

TEST(ReduceTranslators, AxesAndKeepDims) {
  schema::ReducerOptionsT options;
  options.keep_dims = true;
  const std::pair<BuiltinOperator, std::string> cases[] = {
      {BuiltinOperator::MEAN, "MEAN t0 {1} 1 -> t1"},
      {BuiltinOperator::SUM, "REDUCE_SUM t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_PROD, "REDUCE_PROD t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_MAX, "REDUCE_MAX t0 {1} true -> t1"},
      {BuiltinOperator::REDUCE_MIN, "REDUCE_MIN t0 {1} true -> t1"}};
  for (const auto& [code, line] : cases) {
    FloatModel model({{2, 3}}, {{2, 1}});
    // A scalar axis becomes a tensor of one.
    const int32_t axis = model.addConstant<int32_t>(TensorType::INT32, {}, {1});
    model.addOperator(code, {0, axis}, {1}, options);
    EXPECT_THAT(translate(model), ElementsAre(line));
  }
}

TEST(ReduceTranslators, ArgmaxOfBothWidths) {
  FloatModel model({{2, 3}}, {});
  const int32_t axis = model.ints({-1});
  const int32_t narrow = model.addTensor(TensorType::INT32, {2});
  const int32_t wide = model.addTensor(TensorType::INT64, {2});
  model.addOperator(BuiltinOperator::ARG_MAX, {0, axis}, {narrow}, schema::ArgMaxOptionsT());
  model.addOperator(BuiltinOperator::ARG_MIN, {0, axis}, {wide}, schema::ArgMinOptionsT());
  model.setArguments({0}, {narrow, wide});
  const std::vector<std::string> lines = translate(model);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "ARGMAX t0 -1 -> t2");
  EXPECT_EQ(lines[1], graph::nameOf(graph::OperationType::kArgmin64) + " t0 -1 -> t3");
}

TEST(ReduceTranslators, Topk) {
  FloatModel model({{2, 3}}, {{2, 2}});
  const int32_t count = model.addConstant<int32_t>(TensorType::INT32, {}, {2});
  const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
  model.addOperator(BuiltinOperator::TOPK_V2, {0, count}, {1, indices});
  model.setArguments({0}, {1, indices});
  EXPECT_THAT(translate(model), ElementsAre("TOPK_V2 t0 2 -> t1 t3"));
}

TEST(ResizeTranslators, SizesAreScalars) {
  FloatModel model({{1, 4, 4, 2}}, {{1, 6, 8, 2}, {1, 6, 8, 2}});
  const int32_t size = model.ints({6, 8});
  schema::ResizeBilinearOptionsT bilinear;
  bilinear.half_pixel_centers = true;
  model.addOperator(BuiltinOperator::RESIZE_BILINEAR, {0, size}, {1}, bilinear);
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {0, size}, {2});
  EXPECT_THAT(translate(model), ElementsAre("RESIZE_BILINEAR t0 8 6 false false true -> t1",
                                            "RESIZE_NEAREST_NEIGHBOR t0 8 6 false -> t2"));
  model.tensor(size).buffer = 0;
  EXPECT_THAT(errorOf(model),
              testing::AnyOf(HasSubstr("must be a constant"), HasSubstr("before it is written")));
}

TEST(ResizeTranslators, SpaceDepthAndBatch) {
  FloatModel model({{1, 4, 4, 4}}, {{1, 8, 8, 1}, {1, 2, 2, 16}, {4, 2, 2, 4}});
  schema::DepthToSpaceOptionsT depth;
  depth.block_size = 2;
  schema::SpaceToDepthOptionsT space;
  space.block_size = 2;
  model.addOperator(BuiltinOperator::DEPTH_TO_SPACE, {0}, {1}, depth);
  model.addOperator(BuiltinOperator::SPACE_TO_DEPTH, {0}, {2}, space);
  const int32_t blocks = model.ints({2, 2});
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {0, 0, 0, 0});
  model.addOperator(BuiltinOperator::SPACE_TO_BATCH_ND, {0, blocks, paddings}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("DEPTH_TO_SPACE t0 2 -> t1", "SPACE_TO_DEPTH t0 2 -> t2",
                          "SPACE_TO_BATCH_ND t0 t4 t5 -> t3"));
}

TEST(ResizeTranslators, CropsAreASlice) {
  FloatModel model({{4, 2, 2, 1}}, {{1, 3, 2, 1}});
  const int32_t blocks = model.ints({2, 2});
  const int32_t crops = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 0, 1, 1});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {0, blocks, crops}, {1});
  EXPECT_THAT(translate(model),
              ElementsAre("BATCH_TO_SPACE_ND t0 t2 -> %", "SLICE % {0,1,1,0} {-1,3,2,-1} -> t1"));
}

TEST(ShapeTranslators, ReshapeForms) {
  FloatModel model({{2, 3}}, {{3, 2}, {6}});
  const int32_t shape = model.ints({3, 2});
  model.addOperator(BuiltinOperator::RESHAPE, {0, shape}, {1});
  schema::ReshapeOptionsT options;
  options.new_shape = {-1};
  model.addOperator(BuiltinOperator::RESHAPE, {0}, {2}, options);
  EXPECT_THAT(translate(model), ElementsAre("RESHAPE t0 t3 -> t1", "RESHAPE t0 {-1} -> t2"));

  FloatModel scalar({{1}}, {{}});
  scalar.addOperator(BuiltinOperator::RESHAPE, {0}, {1}, options);
  EXPECT_THAT(translate(scalar), ElementsAre("SQUEEZE t0 - -> t1"));
}

TEST(ShapeTranslators, DimensionsOfOne) {
  FloatModel model({{1, 2, 1}}, {{2}, {1, 2}, {1, 1, 2, 1}});
  schema::SqueezeOptionsT some;
  some.squeeze_dims = {-1};
  model.addOperator(BuiltinOperator::SQUEEZE, {0}, {1});
  model.addOperator(BuiltinOperator::SQUEEZE, {0}, {2}, some);
  const int32_t axis = model.ints({0});
  model.addOperator(BuiltinOperator::EXPAND_DIMS, {0, axis}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("SQUEEZE t0 - -> t1", "SQUEEZE t0 {2} -> t2", "EXPAND_DIMS t0 0 -> t3"));
}

TEST(ShapeTranslators, Joining) {
  FloatModel model({{2, 2}, {2, 3}}, {{2, 5}});
  schema::ConcatenationOptionsT concatenation;
  concatenation.axis = -1;
  concatenation.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::CONCATENATION, {0, 1}, {2}, concatenation);
  EXPECT_THAT(translate(model), ElementsAre("CONCATENATION t0 t1 1 -> %", "RELU % -> t2"));

  FloatModel pack({{2, 2}, {2, 2}}, {{2, 2, 2}});
  schema::PackOptionsT options;
  options.axis = 1;
  options.values_count = 2;
  pack.addOperator(BuiltinOperator::PACK, {0, 1}, {2}, options);
  EXPECT_THAT(translate(pack), ElementsAre("PACK 1 t0 t1 -> t2"));
}

TEST(ShapeTranslators, Splitting) {
  FloatModel split({{2, 6}}, {{2, 3}, {2, 3}});
  const int32_t axis = split.addConstant<int32_t>(TensorType::INT32, {}, {-1});
  schema::SplitOptionsT options;
  options.num_splits = 2;
  split.addOperator(BuiltinOperator::SPLIT, {axis, 0}, {1, 2}, options);
  EXPECT_THAT(translate(split), ElementsAre("SPLIT t0 1 2 -> t1 t2"));

  FloatModel parts({{2, 6}}, {{2, 1}, {2, 5}});
  const int32_t sizes = parts.ints({1, -1});
  const int32_t dimension = parts.addConstant<int32_t>(TensorType::INT32, {}, {1});
  parts.addOperator(BuiltinOperator::SPLIT_V, {0, sizes, dimension}, {1, 2});
  EXPECT_THAT(translate(parts),
              ElementsAre("SLICE t0 {0,0} {-1,1} -> t1", "SLICE t0 {0,1} {-1,5} -> t2"));

  FloatModel unpack({{2, 3}}, {{3}, {3}});
  schema::UnpackOptionsT number;
  number.num = 2;
  unpack.addOperator(BuiltinOperator::UNPACK, {0}, {1, 2}, number);
  EXPECT_THAT(translate(unpack),
              ElementsAre("SPLIT t0 0 2 -> % %", "SQUEEZE % {0} -> t1", "SQUEEZE % {0} -> t2"));
}

TEST(ShapeTranslators, SlicesWithWideLimits) {
  FloatModel model({{4, 4}}, {{2, 2}});
  const int32_t begin = model.addConstant<int64_t>(TensorType::INT64, {2}, {1, 2});
  const int32_t size = model.addConstant<int64_t>(TensorType::INT64, {2}, {2, -1});
  model.addOperator(BuiltinOperator::SLICE, {0, begin, size}, {1});
  EXPECT_THAT(translate(model), ElementsAre("SLICE t0 {1,2} {2,-1} -> t1"));
}

TEST(ShapeTranslators, StridedSlices) {
  FloatModel model({{4, 4}}, {{4}});
  const int32_t begin = model.ints({1, 0});
  const int32_t end = model.ints({2, 4});
  const int32_t strides = model.ints({1, 1});
  schema::StridedSliceOptionsT options;
  options.begin_mask = 2;
  options.end_mask = 2;
  options.shrink_axis_mask = 1;
  model.addOperator(BuiltinOperator::STRIDED_SLICE, {0, begin, end, strides}, {1}, options);
  EXPECT_THAT(translate(model), ElementsAre("STRIDED_SLICE t0 t2 t3 t4 2 2 1 -> t1"));
  options.new_axis_mask = 1;
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(errorOf(model), HasSubstr("new axis mask 1"));

  FloatModel shorter({{4, 4}}, {{1, 4}});
  const int32_t one = shorter.ints({1});
  const int32_t two = shorter.ints({2});
  shorter.addOperator(BuiltinOperator::STRIDED_SLICE, {0, one, two, one}, {1});
  EXPECT_THAT(translate(shorter), ElementsAre("STRIDED_SLICE t0 {1,0} {2,0} {1,1} 2 2 0 -> t1"));
}

TEST(ShapeTranslators, PaddingAndOthers) {
  FloatModel model({{2, 2}}, {{4, 4}, {4, 4}, {4, 4}, {2, 2}, {4, 4}, {2, 2}});
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 1, 1, 1});
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {1}, {0.5f});
  const int32_t both = model.ints({1, 0});
  const int32_t twice = model.ints({2, 2});
  schema::MirrorPadOptionsT mirror;
  mirror.mode = schema::MirrorPadMode::SYMMETRIC;
  model.addOperator(BuiltinOperator::PAD, {0, paddings}, {1});
  model.addOperator(BuiltinOperator::PADV2, {0, paddings, value}, {2});
  model.addOperator(BuiltinOperator::MIRROR_PAD, {0, paddings}, {3}, mirror);
  model.addOperator(BuiltinOperator::TRANSPOSE, {0, both}, {4});
  model.addOperator(BuiltinOperator::TILE, {0, twice}, {5});
  model.addOperator(BuiltinOperator::REVERSE_V2, {0, both}, {6});
  EXPECT_THAT(translate(model),
              ElementsAre("PAD t0 t7 -> t1", "PAD_V2 t0 t7 0.5f -> t2", "MIRROR_PAD t0 t7 1 -> t3",
                          "TRANSPOSE t0 t9 -> t4", "TILE t0 t10 -> t5", "REVERSE t0 {1} -> %",
                          "REVERSE % {0} -> t6"));
}

TEST(ShapeTranslators, QuantisedPadValueIsAnInteger) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {2}, 0.5f, 3);
  model.addTensor(TensorType::INT8, {4}, 0.5f, 3);
  const int32_t paddings = model.addConstant<int32_t>(TensorType::INT32, {1, 2}, {1, 1});
  const int32_t value = model.addConstant<int8_t>(TensorType::INT8, {1}, {-7}, 0.5f, 3);
  model.addOperator(BuiltinOperator::PADV2, {0, paddings, value}, {1});
  model.setArguments({0}, {1});
  EXPECT_THAT(translate(model), ElementsAre("PAD_V2 t0 t2 -7 -> t1"));
}

TEST(ShapeTranslators, Fill) {
  FloatModel model({}, {{2, 3}});
  const int32_t shape = model.ints({2, 3});
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {}, {1.5f});
  model.addOperator(BuiltinOperator::FILL, {shape, value}, {0});
  EXPECT_THAT(translate(model), ElementsAre("FILL t1 1.5f -> t0"));
}

TEST(LookupTranslators, Rows) {
  FloatModel model({{5, 2}}, {{3, 2}, {3, 2}});
  const int32_t indices = model.addTensor(TensorType::INT32, {3});
  model.setArguments({0, indices}, {1, 2});
  model.addOperator(BuiltinOperator::GATHER, {0, indices}, {1}, schema::GatherOptionsT());
  model.addOperator(BuiltinOperator::EMBEDDING_LOOKUP, {indices, 0}, {2});
  EXPECT_THAT(translate(model),
              ElementsAre("GATHER t0 0 t3 -> t1", "EMBEDDING_LOOKUP t3 t0 -> t2"));
  schema::GatherOptionsT batched;
  batched.batch_dims = 1;
  model.subgraph().operators[0]->builtin_options.Set(batched);
  EXPECT_THAT(errorOf(model), HasSubstr("batch_dims 1"));
}

TEST(LookupTranslators, HashesAndTables) {
  FloatModel model({{3, 2}, {4, 2}}, {{2, 2}});
  const int32_t lookups = model.addTensor(TensorType::INT32, {2});
  const int32_t keys = model.addTensor(TensorType::INT32, {4});
  const int32_t hits = model.addTensor(TensorType::UINT8, {2});
  const int32_t bits = model.addTensor(TensorType::INT32, {3});
  model.addOperator(BuiltinOperator::HASHTABLE_LOOKUP, {lookups, keys, 1}, {2, hits});
  schema::LSHProjectionOptionsT options;
  options.type = schema::LSHProjectionType::SPARSE;
  model.addOperator(BuiltinOperator::LSH_PROJECTION, {0, 1}, {bits}, options);
  model.setArguments({0, 1, lookups, keys}, {2, hits, bits});
  EXPECT_THAT(translate(model),
              ElementsAre("HASHTABLE_LOOKUP t3 t4 t1 -> t2 t5", "LSH_PROJECTION t0 t1 - 3 -> t6"));
}

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

// Inputs of a full LSTM of three units over four values, weights first.
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

// if (t0) t1 + t1 else t1: the second subgraph gives its input back.
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
  schema::WhileOptionsT options;
  options.cond_subgraph_index = 1;
  options.body_subgraph_index = 2;
  model.addOperator(BuiltinOperator::WHILE, {0}, {1}, options);
  model.setArguments({0}, {1});
  model.addSubgraph("condition");
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::BOOL, {1});
  model.addOperator(BuiltinOperator::LESS, {0, model.ints({10})}, {1});
  model.setArguments({0}, {1});
  model.addSubgraph("body");
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::INT32, {1});
  model.addOperator(BuiltinOperator::ADD, {0, model.ints({1})}, {1});
  model.setArguments({0}, {1});
  const ImportedGraph imported = import(model);
  ASSERT_EQ(imported.model->subgraphs.size(), 3u);
  EXPECT_THAT(linesOf(*imported.model, 0), ElementsAre("WHILE #1 #2 t0 -> t1"));
  EXPECT_THAT(linesOf(*imported.model, 1), ElementsAre("LESS t0 t2 -> t1"));
}

TEST(SubgraphBuilder, OutputsThatAreInputsConstantsOrTwice) {
  FloatModel model({{2}}, {{2}});
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  const int32_t constant = model.addConstant<float>(TensorType::FLOAT32, {2}, {1.0f, 2.0f});
  model.setArguments({0}, {1, 1, 0, constant});
  const ImportedGraph imported = import(model);
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("RELU t0 -> t1", "RESHAPE t1 {2} -> t1", "RESHAPE t0 {2} -> t0",
                          "RESHAPE t2 {2} -> t2"));
  EXPECT_EQ(imported.outputs.size(), 4u);
}

TEST(SubgraphBuilder, OperationsInAnyOrder) {
  FloatModel model({{2}}, {{2}, {2}});
  model.addOperator(BuiltinOperator::RELU, {2}, {1});
  model.addOperator(BuiltinOperator::TANH, {0}, {2});
  EXPECT_THAT(translate(model), ElementsAre("TANH t0 -> t2", "RELU t2 -> t1"));
}

TEST(SubgraphBuilder, UnknownDimensions) {
  FloatModel model({{1, 2}}, {{1, 2}});
  model.tensor(0).shape_signature = {-1, 2};
  model.tensor(1).shape_signature = {-1, 2};
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  const ImportedGraph imported = import(model);
  ASSERT_EQ(imported.inputs.size(), 1u);
  EXPECT_EQ(imported.inputs[0].dimensions, (graph::Dimensions{0, 2}));
  EXPECT_EQ(imported.inputs[0].fileDimensions, (graph::Dimensions{1, 2}));
}

TEST(SubgraphBuilder, SignaturesNameTensors) {
  FloatModel model({{2}}, {{2}});
  model.addOperator(BuiltinOperator::RELU, {0}, {1});
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "decode";
  auto name = std::make_unique<schema::TensorMapT>();
  name->name = "tokens";
  name->tensor_index = 0;
  signature->inputs.push_back(std::move(name));
  model.model.signature_defs.push_back(std::move(signature));
  const auto file = ModelFile::fromPool(poolOf(model.write()));
  ASSERT_TRUE(file);
  const auto imported = (*file)->importSignature("decode");
  ASSERT_TRUE(imported) << imported.error().toString();
  EXPECT_EQ(imported->inputs[0].name, "tokens");
  EXPECT_EQ(imported->inputs[0].tensorName, "t0");
  EXPECT_EQ(imported->outputs[0].name, "t1");
  EXPECT_EQ(imported->signatureKey, "decode");
}

// Constants of unaligned buffers are copied, all others stay in the file.
TEST(SubgraphBuilder, BuffersOutsideTheTables) {
  for (const bool isAligned : {true, false}) {
    FloatModel model({{2}}, {{2}});
    const int32_t weights = model.addTensor(TensorType::FLOAT32, {2});
    auto buffer = std::make_unique<schema::BufferT>();
    buffer->offset = 1;  // not 0, so that the fields exist and the size stays
    buffer->size = 8;
    model.model.buffers.push_back(std::move(buffer));
    model.tensor(weights).buffer = 1;
    model.addOperator(BuiltinOperator::ADD, {0, weights}, {1});
    std::vector<uint8_t> bytes = model.write();
    bytes.resize((bytes.size() + 15) / 16 * 16 + (isAligned ? 0 : 1));
    model.model.buffers[1]->offset = bytes.size();
    std::vector<uint8_t> written = model.write();
    ASSERT_LE(written.size(), bytes.size());
    written.resize(bytes.size());
    const float values[] = {3.0f, 4.0f};
    const auto* raw = reinterpret_cast<const uint8_t*>(values);
    written.insert(written.end(), raw, raw + sizeof(values));
    const auto file = ModelFile::fromPool(poolOf(written));
    ASSERT_TRUE(file) << file.error().toString();
    const auto imported = (*file)->importSubgraph(0);
    ASSERT_TRUE(imported) << imported.error().toString();
    const graph::Subgraph& main = imported->model->main();
    const graph::Operand& operand = main.operands[main.operations.at(0).inputs[1]];
    EXPECT_EQ(operand.lifetime,
              isAligned ? graph::Lifetime::kConstantReference : graph::Lifetime::kConstantCopy);
    EXPECT_EQ(valueOf<float>(*imported->model, operand, 1), 4.0f);
  }
}

}  // namespace
}  // namespace hearth::tflite
