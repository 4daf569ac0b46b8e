// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

TEST(QuantizationTranslators, RequantisationIsOneOperation) {
  ModelWriter model;
  model.addTensor(TensorType::UINT8, {4}, 0.5f, 128);
  model.addTensor(TensorType::INT8, {4}, 0.5f, 0);
  model.addTensor(TensorType::FLOAT32, {4});
  model.addTensor(TensorType::INT8, {4}, 0.25f, 1);
  model.addOperator(BuiltinOperator::QUANTIZE, {0}, {1});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {1}, {2});
  model.addOperator(BuiltinOperator::QUANTIZE, {2}, {3});
  model.setArguments({0}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("QUANTIZE t0 -> t1", "DEQUANTIZE t1 -> t2", "QUANTIZE t2 -> t3"));
}

std::vector<std::string> quantized(TensorType from, float fromScale, int64_t fromZeroPoint,
                                   TensorType to, float toScale, int64_t toZeroPoint) {
  ModelWriter model;
  model.addTensor(from, {4}, fromScale, fromZeroPoint);
  model.addTensor(to, {4}, toScale, toZeroPoint);
  model.addOperator(BuiltinOperator::QUANTIZE, {0}, {1});
  model.setArguments({0}, {1});
  return translate(model);
}

TEST(QuantizationTranslators, Int32IsQuantisedThroughFloats) {
  EXPECT_THAT(quantized(TensorType::INT32, 0.5f, 0, TensorType::INT8, 0.25f, 1),
              ElementsAre("CAST t0 -> %", "MUL % % 0 -> %", "QUANTIZE % -> t1"));
  EXPECT_THAT(quantized(TensorType::INT32, 0.5f, 3, TensorType::INT16, 0.25f, 0),
              ElementsAre("CAST t0 -> %", "SUB % % 0 -> %", "MUL % % 0 -> %", "QUANTIZE % -> t1"));
  EXPECT_THAT(quantized(TensorType::INT16, 0.5f, 0, TensorType::INT32, 0.25f, 0),
              ElementsAre("DEQUANTIZE t0 -> %", "DIV % % 0 -> %", "ROUND % -> %", "CAST % -> t1"));
  EXPECT_THAT(quantized(TensorType::FLOAT32, 0.0f, 0, TensorType::INT32, 0.25f, 7),
              ElementsAre("DIV t0 % 0 -> %", "ROUND % -> %", "ADD % % 0 -> %", "CAST % -> t1"));
}

TEST(QuantizationTranslators, Int32NeedsAScaleToBeQuantised) {
  ModelWriter model;
  model.addTensor(TensorType::INT32, {4});
  model.addTensor(TensorType::INT8, {4}, 0.5f);
  model.addOperator(BuiltinOperator::QUANTIZE, {0}, {1});
  model.setArguments({0}, {1});
  EXPECT_THAT(errorOf(model), HasSubstr("The INT32 tensor \"t0\" has 0 scales, it must have 1."));
  model.tensor(0).quantization = std::make_unique<schema::QuantizationParametersT>();
  model.tensor(0).quantization->scale = {0.0f};
  EXPECT_THAT(errorOf(model), HasSubstr("The scale of the INT32 tensor \"t0\" is 0."));
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

// A layer whose state, variable t1, is written from a float16 tensor.
ModelWriter modelWithWideState(bool isConstant, bool isReadBefore,
                               ModelWriter::Shape shape = {1, 2}) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t state = model.addVariable(TensorType::FLOAT32, shape);
  const int32_t stored =
      isConstant ? model.addConstant<uint16_t>(TensorType::FLOAT16, {1, 2}, {0x3C00, 0xC000})
                 : model.addTensor(TensorType::FLOAT16, {1, 2});
  const int32_t weights = model.addConstant<float>(TensorType::FLOAT32, {2, 2}, {1, 2, 3, 4});
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {2}, {5, 6});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 2});
  const auto addLayer = [&](int32_t result) {
    model.addOperator(BuiltinOperator::RNN, {input, weights, weights, bias, state}, {result},
                      schema::RNNOptionsT());
  };
  if (isReadBefore) addLayer(model.addTensor(TensorType::FLOAT32, {1, 2}));
  model.addOperator(BuiltinOperator::DEQUANTIZE, {stored}, {state});
  addLayer(output);
  model.setArguments(isConstant ? std::vector<int32_t>{input} : std::vector{input, stored},
                     {output});
  return model;
}

TEST(QuantizationTranslators, AWideConstantInitialisesAVariable) {
  const ImportedGraph imported = import(modelWithWideState(true, false));
  EXPECT_THAT(linesOf(*imported.model), ElementsAre("RNN t0 t3 t3 t4 t1 0 -> % t5"));
  ASSERT_EQ(imported.states.size(), 1u);
  std::vector<float> values(2);
  ASSERT_EQ(imported.states[0].initialValue.size(), sizeof(float) * values.size());
  std::memcpy(values.data(), imported.states[0].initialValue.data(), sizeof(float) * values.size());
  EXPECT_THAT(values, ElementsAre(1.0f, -2.0f));
}

TEST(QuantizationTranslators, OtherValuesDoNotInitialiseAVariable) {
  EXPECT_THAT(errorOf(modelWithWideState(false, false)), HasSubstr("It writes a variable from"));
  EXPECT_THAT(errorOf(modelWithWideState(true, true)), HasSubstr("is in use already"));
  EXPECT_THAT(errorOf(modelWithWideState(true, false, {1, 3})), HasSubstr("with 8 bytes"));
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

// Two rows of three elements, of which [0][2], [1][0] and [1][1] are stored.
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

// Columns of blocks of 2x2: the block in rows 2 and 3, columns 0 and 1.
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
  // The constant is used without a DENSIFY in between.
  ModelWriter used = sparseModel();
  used.subgraph().operators[1]->inputs = {0};
  EXPECT_EQ(errorOf(used), "imported");
}

// Forms whose results have another type than their data take the way over real numbers.
TEST(MixedTypes, SoftmaxOfBytesWith16BitResults) {
  for (const TensorType type : {TensorType::INT8, TensorType::UINT8}) {
    ModelWriter model;
    model.addTensor(type, {2, 4}, 0.25f, 3);
    model.addTensor(TensorType::INT16, {2, 4}, 1.0f / 65536, -32768);
    schema::SoftmaxOptionsT options;
    options.beta = 1.0f;
    model.addOperator(BuiltinOperator::SOFTMAX, {0}, {1}, options);
    model.setArguments({0}, {1});
    EXPECT_THAT(translate(model),
                ElementsAre("DEQUANTIZE t0 -> %", "SOFTMAX % 1f -> %", "QUANTIZE % -> t1"));
  }
}

TEST(MixedTypes, ProductsOf16BitNumbersInBytes) {
  ModelWriter model;
  for (int i = 0; i < 2; ++i) model.addTensor(TensorType::INT16, {4}, 1.0f / 32768);
  model.addTensor(TensorType::UINT8, {4}, 1.0f / 128, 128);
  schema::MulOptionsT options;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::MUL, {0, 1}, {2}, options);
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(translate(model), ElementsAre("DEQUANTIZE t0 -> %", "DEQUANTIZE t1 -> %",
                                            "MUL % % 1 -> %", "QUANTIZE % -> t2"));
}

TEST(MixedTypes, FullyConnectedBytesWith16BitResults) {
  ModelWriter model;
  model.addTensor(TensorType::UINT8, {1, 2}, 0.5f, 128);
  model.addConstant<uint8_t>(TensorType::UINT8, {1, 2}, {130, 126}, 0.25f, 128);
  const int32_t bias = model.ints({8});
  model.addTensor(TensorType::INT16, {1, 1}, 1.0f / 4096);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {0, 1, bias}, {3});
  model.setArguments({0}, {3});
  EXPECT_THAT(translate(model),
              ElementsAre("DEQUANTIZE t0 -> %", "DEQUANTIZE t1 -> %", "CAST t2 -> %",
                          "MUL % % 0 -> %", "FULLY_CONNECTED % % % 0 -> %", "QUANTIZE % -> t3"));
}

TEST(MixedTypes, ProductsOfMatricesOfBytesAsInt32) {
  ModelWriter model;
  model.addTensor(TensorType::INT8, {2, 3}, 0.5f);
  model.addTensor(TensorType::INT8, {3, 4}, 0.5f);
  model.addTensor(TensorType::INT32, {2, 4});
  model.addOperator(BuiltinOperator::BATCH_MATMUL, {0, 1}, {2}, schema::BatchMatMulOptionsT());
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(translate(model), ElementsAre("CAST t0 -> %", "CAST t1 -> %",
                                            "BATCH_MATMUL % % false false -> %", "CAST % -> t2"));
  model.subgraph().tensors[0]->shape = {2, 1025};
  model.subgraph().tensors[1]->shape = {1025, 4};
  EXPECT_THAT(errorOf(model), HasSubstr("adds 1025 products of int8 numbers"));
}

TEST(MixedTypes, IndicesOf16Bits) {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {5, 3});
  model.addTensor(TensorType::INT16, {2});
  model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::GATHER, {0, 1}, {2});
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(translate(model), ElementsAre("CAST t1 -> %", "GATHER t0 0 % -> t2"));

  ModelWriter best;
  best.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t count = best.addConstant<int16_t>(TensorType::INT16, {}, {2});
  best.addTensor(TensorType::FLOAT32, {2, 2});
  best.addTensor(TensorType::INT16, {2, 2});
  best.addOperator(BuiltinOperator::TOPK_V2, {0, count}, {2, 3});
  best.setArguments({0}, {2, 3});
  EXPECT_THAT(translate(best), ElementsAre("TOPK_V2 t0 2 -> t2 %", "CAST % -> t3"));
}

}  // namespace
}  // namespace hearth::tflite
