// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/sample_layers.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"

namespace hearth::tflite {
namespace {

using schema::ActivationFunctionType;
using schema::BuiltinOperator;
using schema::TensorType;

ModelWriter convolutions(TensorType type) {
  ModelWriter model;
  const TensorType biasType = type == TensorType::FLOAT32 ? type : TensorType::INT32;
  const int32_t input = model.addActivation(type, {1, 4, 4, 2});
  const int32_t conv = model.addActivation(type, {1, 4, 4, 2});
  const int32_t depthwise = model.addActivation(type, {1, 2, 2, 2});
  const int32_t pooled = model.addActivation(type, {1, 1, 1, 2});
  const int32_t output = model.addActivation(type, {1, 3});
  schema::Conv2DOptionsT convOptions;
  convOptions.stride_w = convOptions.stride_h = 1;
  convOptions.fused_activation_function = ActivationFunctionType::RELU6;
  const int32_t filter = model.addWeights(type, {2, 1, 1, 2});
  if (type == TensorType::INT8) {
    model.tensor(filter).quantization->scale = {0.5f, 0.25f};
    model.tensor(filter).quantization->zero_point = {0, 0};
  }
  model.addOperator(BuiltinOperator::CONV_2D, {input, filter, model.addWeights(biasType, {2})},
                    {conv}, convOptions);
  schema::DepthwiseConv2DOptionsT depthwiseOptions;
  depthwiseOptions.stride_w = depthwiseOptions.stride_h = 2;
  model.addOperator(BuiltinOperator::DEPTHWISE_CONV_2D,
                    {conv, model.addWeights(type, {1, 2, 2, 2}), -1}, {depthwise},
                    depthwiseOptions);
  schema::Pool2DOptionsT poolOptions;
  poolOptions.padding = schema::Padding::VALID;
  poolOptions.stride_w = poolOptions.stride_h = 1;
  poolOptions.filter_width = poolOptions.filter_height = 2;
  model.addOperator(BuiltinOperator::MAX_POOL_2D, {depthwise}, {pooled}, poolOptions);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED,
                    {pooled, model.addWeights(type, {3, 2}), model.addWeights(biasType, {3})},
                    {output}, schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  return model;
}

ModelWriter quantised() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t a = model.addTensor(TensorType::INT8, {4}, 0.5f, 3);
  const int32_t b = model.addTensor(TensorType::UINT8, {4}, 0.25f, 128);
  const int32_t c = model.addTensor(TensorType::UINT8, {4}, 0.25f, 128);
  const int32_t d = model.addTensor(TensorType::UINT8, {4}, 0.25f, 0);
  const int32_t output = model.addTensor(TensorType::FLOAT32, {4});
  schema::LeakyReluOptionsT slope;
  slope.alpha = 0.1f;
  model.addOperator(BuiltinOperator::QUANTIZE, {input}, {a});
  model.addOperator(BuiltinOperator::QUANTIZE, {a}, {b});
  model.addOperator(BuiltinOperator::LEAKY_RELU, {b}, {c}, slope);
  model.addOperator(BuiltinOperator::SQUARED_DIFFERENCE, {c, b}, {d});
  model.addOperator(BuiltinOperator::DEQUANTIZE, {d}, {output});
  model.setArguments({input}, {output});
  return model;
}

ModelWriter lstm(TensorType type) {
  ModelWriter model;
  const bool isFloat = type == TensorType::FLOAT32;
  const int32_t input = model.addActivation(type, {1, 1, 2});
  const int32_t output = model.addActivation(type, {1, 1, 1});
  std::vector<int32_t> inputs(24, -1);
  inputs[0] = input;
  for (int i = 1; i <= 8; ++i) inputs[i] = model.addWeights(type, {1, i <= 4 ? 2 : 1});
  for (int i = 12; i <= 15; ++i)
    inputs[i] = model.addWeights(isFloat ? type : TensorType::INT32, {1});
  const float scale = isFloat ? 0.0f : 0.5f;
  inputs[18] = model.addVariable(type, {1, 1}, scale);
  inputs[19] = model.addVariable(isFloat ? type : TensorType::INT16, {1, 1}, scale);
  schema::UnidirectionalSequenceLSTMOptionsT options;
  options.fused_activation_function = ActivationFunctionType::TANH;
  model.addOperator(BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, {output}, options);
  model.setArguments({input}, {output});
  return model;
}

ModelWriter recurrent() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t hidden = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 1});
  const int32_t square = model.addWeights(TensorType::FLOAT32, {2, 2});
  model.addOperator(BuiltinOperator::RNN,
                    {input, square, square, model.addWeights(TensorType::FLOAT32, {2}),
                     model.addVariable(TensorType::FLOAT32, {1, 2})},
                    {hidden}, schema::RNNOptionsT());
  schema::SVDFOptionsT options;
  options.rank = 1;
  model.addOperator(BuiltinOperator::SVDF,
                    {hidden, model.addWeights(TensorType::FLOAT32, {1, 2}),
                     model.addWeights(TensorType::FLOAT32, {1, 3}), -1,
                     model.addVariable(TensorType::FLOAT32, {1, 3})},
                    {output}, options);
  model.setArguments({input}, {output});
  return model;
}

ModelWriter integerSvdf() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::INT8, {1, 2}, 0.5f, 3);
  const int32_t features =
      model.addConstantBytes(TensorType::INT8, {2, 2}, std::vector<uint8_t>(4, 2), 0.25f);
  const int32_t times =
      model.addConstantBytes(TensorType::INT16, {2, 3}, std::vector<uint8_t>(12, 3), 0.001f);
  const int32_t bias =
      model.addConstantBytes(TensorType::INT32, {1}, std::vector<uint8_t>(4, 1), 0.000125f);
  const int32_t state = model.addVariable(TensorType::INT16, {1, 6}, 0.125f);
  const int32_t output = model.addTensor(TensorType::INT8, {1, 1}, 0.5f, -128);
  schema::SVDFOptionsT options;
  options.rank = 2;
  options.fused_activation_function = schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::SVDF, {input, features, times, bias, state}, {output},
                    options);
  model.setArguments({input}, {output});
  return model;
}

ModelWriter sparse() {
  ModelWriter model;
  const int32_t stored = model.addConstant<float>(TensorType::FLOAT32, {2, 3}, {1, 2, 3});
  auto rows = std::make_unique<schema::DimensionMetadataT>();
  rows->dense_size = 2;
  auto columns = std::make_unique<schema::DimensionMetadataT>();
  columns->format = schema::DimensionType::SPARSE_CSR;
  schema::Uint16VectorT segments;
  segments.values = {0, 1, 3};
  columns->array_segments.Set(std::move(segments));
  schema::Uint8VectorT indices;
  indices.values = {2, 0, 1};
  columns->array_indices.Set(std::move(indices));
  auto sparsity = std::make_unique<schema::SparsityParametersT>();
  sparsity->traversal_order = {0, 1};
  sparsity->dim_metadata.push_back(std::move(rows));
  sparsity->dim_metadata.push_back(std::move(columns));
  model.tensor(stored).sparsity = std::move(sparsity);
  const int32_t dense = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::DENSIFY, {stored}, {dense});
  model.addOperator(BuiltinOperator::TANH, {dense}, {output});
  model.setArguments({}, {output});
  return model;
}

// Layers of a transformer with 4-bit weights.
ModelWriter transformer() {
  ModelWriter model;
  const int32_t token = model.addTensor(TensorType::INT32, {1});
  const int32_t position = model.addTensor(TensorType::INT32, {2});
  const int32_t cache = model.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t row = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t hidden = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t activated = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t updated = model.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t scales =
      model.addConstant<uint16_t>(TensorType::FLOAT16, {2, 2}, {0x3C00, 0x4000, 0x3800, 0x3C00});
  const int32_t wideScales =
      model.addConstant<uint16_t>(TensorType::FLOAT16, {4, 1}, {0x3C00, 0x4000, 0x3800, 0x3C00});
  const int32_t table = model.addBlockwise({2, 4}, {0x21, 0x43, 0xF1, 0x87}, scales, 2);
  const int32_t filter = model.addBlockwise({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, wideScales, 4);
  model.addOperator(BuiltinOperator::EMBEDDING_LOOKUP, {token, table}, {row});
  schema::FullyConnectedOptionsT layer;
  layer.keep_num_dims = true;
  model.addOperator(BuiltinOperator::FULLY_CONNECTED, {row, filter, -1}, {hidden}, layer);
  schema::GeluOptionsT gelu;
  gelu.approximate = true;
  model.addOperator(BuiltinOperator::GELU, {hidden}, {activated}, gelu);
  model.addOperator(BuiltinOperator::DYNAMIC_UPDATE_SLICE, {cache, activated, position}, {updated});
  model.setArguments({token, position, cache}, {updated});
  return model;
}

// Volumes: a convolution over three dimensions and its transposed form.
ModelWriter volumes() {
  ModelWriter model;
  const int32_t data = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 4, 2});
  const int32_t filter = model.addWeights(TensorType::FLOAT32, {1, 2, 2, 2, 3});
  const int32_t bias = model.addWeights(TensorType::FLOAT32, {3});
  const int32_t middle = model.addTensor(TensorType::FLOAT32, {1, 2, 2, 2, 3});
  schema::Conv3DOptionsT options;
  options.stride_d = 1;
  options.stride_h = 2;
  options.stride_w = 2;
  model.addOperator(BuiltinOperator::CONV_3D, {data, filter, bias}, {middle}, options);
  const int32_t shape = model.ints({1, 2, 3, 4, 2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 4, 2});
  model.addOperator(BuiltinOperator::CONV_3D_TRANSPOSE, {shape, filter, middle}, {output}, options);
  model.setArguments({data}, {output});
  return model;
}

// One known composite and one unknown.
ModelWriter composites() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t scale = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t normal = model.addTensor(TensorType::FLOAT32, {1, 4});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1, 4});
  model.addComposite("odml.rms_norm", 1, flexMap({{"epsilon", 1e-6}}), {input, scale}, {normal});
  model.addComposite("odml.other", 1, {}, {normal, scale}, {output});
  model.setArguments({input, scale}, {output});
  model.addSubgraph("odml.impl");
  for (const ModelWriter::Shape& shape : {ModelWriter::Shape{1, 4}, {4}, {1, 4}})
    model.addTensor(TensorType::FLOAT32, shape);
  model.addOperator(BuiltinOperator::MUL, {0, 1}, {2});
  model.setArguments({0, 1}, {2});
  return model;
}

}  // namespace

std::vector<SampleModel> sampleLayers() {
  return {{"conv_float", convolutions(TensorType::FLOAT32).write()},
          {"conv_int8", convolutions(TensorType::INT8).write()},
          {"conv_uint8", convolutions(TensorType::UINT8).write()},
          {"quantised", quantised().write()},
          {"lstm_float", lstm(TensorType::FLOAT32).write()},
          {"lstm_int8", lstm(TensorType::INT8).write()},
          {"recurrent", recurrent().write()},
          {"svdf_int8", integerSvdf().write()},
          {"sparse", sparse().write()},
          {"transformer", transformer().write()},
          {"composites", composites().write()},
          {"volumes", volumes().write()}};
}

}  // namespace hearth::tflite
