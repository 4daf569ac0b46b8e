// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/sample_models.h"

#include <memory>
#include <utility>

#include "frontends/tflite/testing/model_writer.h"

namespace hearth::tflite {
namespace {

using schema::ActivationFunctionType;
using schema::BuiltinOperator;
using schema::TensorType;

// A tensor without quantisation, or with a scale if its type has 8 bits.
int32_t activation(ModelWriter* model, TensorType type, ModelWriter::Shape shape) {
  const bool isByte = type == TensorType::INT8 || type == TensorType::UINT8;
  return model->addTensor(type, std::move(shape), isByte ? 0.5f : 0.0f,
                          type == TensorType::UINT8 ? 128 : 0);
}

int32_t weights(ModelWriter* model, TensorType type, ModelWriter::Shape shape) {
  const int32_t added = activation(model, type, shape);
  size_t bytes = type == TensorType::FLOAT32 || type == TensorType::INT32 ? 4 : 1;
  for (const int32_t dimension : shape) bytes *= static_cast<size_t>(dimension);
  auto buffer = std::make_unique<schema::BufferT>();
  for (size_t i = 0; i < bytes; ++i) buffer->data.push_back(static_cast<uint8_t>(i % 61));
  model->model.buffers.push_back(std::move(buffer));
  model->tensor(added).buffer = static_cast<uint32_t>(model->model.buffers.size()) - 1;
  return added;
}

ModelWriter convolutions(TensorType type) {
  ModelWriter model;
  const TensorType biasType = type == TensorType::FLOAT32 ? type : TensorType::INT32;
  const int32_t input = activation(&model, type, {1, 4, 4, 2});
  const int32_t conv = activation(&model, type, {1, 4, 4, 2});
  const int32_t depthwise = activation(&model, type, {1, 2, 2, 2});
  const int32_t pooled = activation(&model, type, {1, 1, 1, 2});
  const int32_t output = activation(&model, type, {1, 3});
  schema::Conv2DOptionsT convOptions;
  convOptions.stride_w = convOptions.stride_h = 1;
  convOptions.fused_activation_function = ActivationFunctionType::RELU6;
  const int32_t filter = weights(&model, type, {2, 1, 1, 2});
  if (type == TensorType::INT8) {
    model.tensor(filter).quantization->scale = {0.5f, 0.25f};
    model.tensor(filter).quantization->zero_point = {0, 0};
  }
  model.addOperator(BuiltinOperator::CONV_2D, {input, filter, weights(&model, biasType, {2})},
                    {conv}, convOptions);
  schema::DepthwiseConv2DOptionsT depthwiseOptions;
  depthwiseOptions.stride_w = depthwiseOptions.stride_h = 2;
  model.addOperator(BuiltinOperator::DEPTHWISE_CONV_2D,
                    {conv, weights(&model, type, {1, 2, 2, 2}), -1}, {depthwise}, depthwiseOptions);
  schema::Pool2DOptionsT poolOptions;
  poolOptions.padding = schema::Padding::VALID;
  poolOptions.stride_w = poolOptions.stride_h = 1;
  poolOptions.filter_width = poolOptions.filter_height = 2;
  model.addOperator(BuiltinOperator::MAX_POOL_2D, {depthwise}, {pooled}, poolOptions);
  model.addOperator(BuiltinOperator::FULLY_CONNECTED,
                    {pooled, weights(&model, type, {3, 2}), weights(&model, biasType, {3})},
                    {output}, schema::FullyConnectedOptionsT());
  model.setArguments({input}, {output});
  return model;
}

ModelWriter elementwise() {
  ModelWriter model;
  const int32_t left = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t right = model.addTensor(TensorType::FLOAT32, {1, 3});
  int32_t last = left;
  const auto next = [&] {
    return model.addTensor(TensorType::FLOAT32, {2, 3});
  };
  for (const BuiltinOperator code :
       {BuiltinOperator::ADD, BuiltinOperator::SQUARED_DIFFERENCE, BuiltinOperator::MAXIMUM}) {
    const int32_t result = next();
    model.addOperator(code, {last, right}, {result});
    last = result;
  }
  for (const BuiltinOperator code :
       {BuiltinOperator::COS, BuiltinOperator::LEAKY_RELU, BuiltinOperator::ELU,
        BuiltinOperator::SOFTMAX, BuiltinOperator::LOG_SOFTMAX}) {
    const int32_t result = next();
    model.addOperator(code, {last}, {result});
    last = result;
  }
  model.setArguments({left, right}, {last});
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

ModelWriter shapes() {
  ModelWriter model;
  const auto add = [&](ModelWriter::Shape shape) {
    return model.addTensor(TensorType::FLOAT32, std::move(shape));
  };
  const int32_t input = add({2, 4});
  const int32_t reshaped = add({4, 2});
  const int32_t padded = add({6, 2});
  const int32_t sliced = add({4, 2});
  const int32_t first = add({1, 2});
  const int32_t second = add({3, 2});
  const int32_t joined = add({4, 2});
  const int32_t row0 = add({4});
  const int32_t row1 = add({4});
  const int32_t packed = add({2, 4});
  const int32_t transposed = add({4, 2});
  const int32_t reversed = add({4, 2});
  const int32_t padding = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 1, 0, 0});
  const int32_t zero = model.addConstant<float>(TensorType::FLOAT32, {}, {0.0f});
  const int32_t one = model.addConstant<int32_t>(TensorType::INT32, {}, {0});
  schema::UnpackOptionsT unpack;
  unpack.num = 2;
  unpack.axis = 1;
  model.addOperator(BuiltinOperator::RESHAPE, {input, model.ints({-1, 2})}, {reshaped});
  model.addOperator(BuiltinOperator::PADV2, {reshaped, padding, zero}, {padded});
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {padded, model.ints({1}), model.ints({5}), model.ints({1})}, {sliced});
  model.addOperator(BuiltinOperator::SPLIT_V, {sliced, model.ints({1, -1}), one}, {first, second});
  model.addOperator(BuiltinOperator::CONCATENATION, {first, second}, {joined});
  model.addOperator(BuiltinOperator::UNPACK, {joined}, {row0, row1}, unpack);
  model.addOperator(BuiltinOperator::PACK, {row0, row1}, {packed});
  model.addOperator(BuiltinOperator::TRANSPOSE, {packed, model.ints({1, 0})}, {transposed});
  model.addOperator(BuiltinOperator::REVERSE_V2, {transposed, model.ints({0, 1})}, {reversed});
  model.setArguments({input}, {reversed});
  return model;
}

ModelWriter space() {
  ModelWriter model;
  const auto add = [&](ModelWriter::Shape shape) {
    return model.addTensor(TensorType::FLOAT32, std::move(shape));
  };
  const int32_t input = add({1, 4, 4, 1});
  const int32_t batched = add({4, 2, 2, 1});
  const int32_t back = add({1, 3, 4, 1});
  const int32_t resized = add({1, 2, 2, 1});
  const int32_t deep = add({1, 1, 1, 4});
  const int32_t blocks = model.ints({2, 2});
  const int32_t none = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {0, 0, 0, 0});
  const int32_t crops = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 0, 0, 0});
  schema::SpaceToDepthOptionsT options;
  options.block_size = 2;
  model.addOperator(BuiltinOperator::SPACE_TO_BATCH_ND, {input, blocks, none}, {batched});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {batched, blocks, crops}, {back});
  model.addOperator(BuiltinOperator::RESIZE_BILINEAR, {back, model.ints({2, 2})}, {resized});
  model.addOperator(BuiltinOperator::SPACE_TO_DEPTH, {resized}, {deep}, options);
  model.setArguments({input}, {deep});
  return model;
}

ModelWriter reductions() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t mean = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t indices = model.addTensor(TensorType::INT64, {2});
  const int32_t best = model.addTensor(TensorType::FLOAT32, {2, 1});
  const int32_t places = model.addTensor(TensorType::INT32, {2, 1});
  const int32_t axis = model.ints({1});
  const int32_t count = model.addConstant<int32_t>(TensorType::INT32, {}, {1});
  model.addOperator(BuiltinOperator::MEAN, {input, axis}, {mean});
  model.addOperator(BuiltinOperator::SUM, {input, axis}, {sum});
  model.addOperator(BuiltinOperator::ARG_MAX, {input, axis}, {indices});
  model.addOperator(BuiltinOperator::TOPK_V2, {input, count}, {best, places});
  model.setArguments({input}, {mean, sum, indices, best, places});
  return model;
}

ModelWriter lookups() {
  ModelWriter model;
  const int32_t indices = model.addTensor(TensorType::INT32, {3});
  const int32_t rows = model.addTensor(TensorType::FLOAT32, {3, 2});
  const int32_t embedded = model.addTensor(TensorType::FLOAT32, {3, 2});
  const int32_t table = weights(&model, TensorType::FLOAT32, {4, 2});
  model.addOperator(BuiltinOperator::GATHER, {table, indices}, {rows});
  model.addOperator(BuiltinOperator::EMBEDDING_LOOKUP, {indices, table}, {embedded});
  model.setArguments({indices}, {rows, embedded});
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "lookup";
  auto name = std::make_unique<schema::TensorMapT>();
  name->name = "tokens";
  signature->inputs.push_back(std::move(name));
  model.model.signature_defs.push_back(std::move(signature));
  return model;
}

ModelWriter lstm(TensorType type) {
  ModelWriter model;
  const bool isFloat = type == TensorType::FLOAT32;
  const int32_t input = activation(&model, type, {1, 1, 2});
  const int32_t output = activation(&model, type, {1, 1, 1});
  std::vector<int32_t> inputs(24, -1);
  inputs[0] = input;
  for (int i = 1; i <= 8; ++i) inputs[i] = weights(&model, type, {1, i <= 4 ? 2 : 1});
  for (int i = 12; i <= 15; ++i)
    inputs[i] = weights(&model, isFloat ? type : TensorType::INT32, {1});
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
  const int32_t square = weights(&model, TensorType::FLOAT32, {2, 2});
  model.addOperator(BuiltinOperator::RNN,
                    {input, square, square, weights(&model, TensorType::FLOAT32, {2}),
                     model.addVariable(TensorType::FLOAT32, {1, 2})},
                    {hidden}, schema::RNNOptionsT());
  schema::SVDFOptionsT options;
  options.rank = 1;
  model.addOperator(BuiltinOperator::SVDF,
                    {hidden, weights(&model, TensorType::FLOAT32, {1, 2}),
                     weights(&model, TensorType::FLOAT32, {1, 3}), -1,
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

// Operations on indices, counts and sequences, which NNAPI lacks.
ModelWriter indices() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {3});
  const int32_t data = model.addTensor(TensorType::FLOAT32, {3, 2});
  const auto result = [&](TensorType type, ModelWriter::Shape shape) {
    return model.addTensor(type, std::move(shape));
  };
  const int32_t sums = result(TensorType::FLOAT32, {3, 2});
  schema::CumsumOptionsT cumsum;
  cumsum.exclusive = true;
  model.addOperator(BuiltinOperator::CUMSUM, {data, model.ints({0})}, {sums}, cumsum);
  const int32_t hot = result(TensorType::FLOAT32, {3, 4});
  const int32_t one = model.addConstant<float>(TensorType::FLOAT32, {}, {1});
  const int32_t zero = model.addConstant<float>(TensorType::FLOAT32, {}, {0});
  schema::OneHotOptionsT oneHot;
  oneHot.axis = -1;
  model.addOperator(BuiltinOperator::ONE_HOT, {numbers, model.ints({4}), one, zero}, {hot}, oneHot);
  const int32_t column = result(TensorType::INT32, {3, 1});
  model.addOperator(BuiltinOperator::RESHAPE, {numbers, model.ints({3, 1})}, {column});
  const int32_t scattered = result(TensorType::FLOAT32, {4, 2});
  model.addOperator(BuiltinOperator::SCATTER_ND, {column, sums, model.ints({4, 2})}, {scattered});
  const int32_t reversed = result(TensorType::FLOAT32, {3, 2});
  schema::ReverseSequenceOptionsT sequence;
  sequence.seq_dim = 1;
  model.addOperator(BuiltinOperator::REVERSE_SEQUENCE, {sums, numbers}, {reversed}, sequence);
  const int32_t places = result(TensorType::INT64, {1, 2});
  model.addOperator(BuiltinOperator::WHERE, {hot}, {places});
  const int32_t shape = result(TensorType::INT32, {2});
  model.addOperator(BuiltinOperator::SHAPE, {places}, {shape});
  model.setArguments({numbers, data}, {scattered, reversed, shape});
  return model;
}

// The spectrum of a frame of sound, with which audio models begin.
ModelWriter spectrum() {
  ModelWriter model;
  const int32_t frames = model.addTensor(TensorType::FLOAT32, {2, 1, 6});
  const int32_t complex = model.addTensor(TensorType::COMPLEX64, {2, 1, 5});
  model.addOperator(BuiltinOperator::RFFT2D, {frames, model.ints({1, 8})}, {complex});
  std::vector<int32_t> parts;
  for (const BuiltinOperator code :
       {BuiltinOperator::COMPLEX_ABS, BuiltinOperator::REAL, BuiltinOperator::IMAG}) {
    parts.push_back(model.addTensor(TensorType::FLOAT32, {2, 1, 5}));
    model.addOperator(code, {complex}, {parts.back()});
  }
  parts.push_back(complex);
  // A filter in the frequency domain, of which the real part is kept.
  const int32_t gains = model.addTensor(TensorType::FLOAT32, {5});
  const int32_t filter = model.addTensor(TensorType::COMPLEX64, {5});
  model.addOperator(BuiltinOperator::CAST, {gains}, {filter});
  const int32_t filtered = model.addTensor(TensorType::COMPLEX64, {2, 1, 5});
  model.addOperator(BuiltinOperator::MUL, {complex, filter}, {filtered});
  const int32_t turned = model.addTensor(TensorType::COMPLEX64, {5, 2, 1});
  model.addOperator(BuiltinOperator::TRANSPOSE, {filtered, model.ints({2, 0, 1})}, {turned});
  parts.push_back(model.addTensor(TensorType::FLOAT32, {5, 2, 1}));
  model.addOperator(BuiltinOperator::CAST, {turned}, {parts.back()});
  model.setArguments({frames, gains}, parts);
  return model;
}

// Operations on bits, buckets and diagonals.
ModelWriter bits() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {4});
  const int32_t mask = model.addTensor(TensorType::INT32, {1});
  const int32_t data = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  const auto result = [&](TensorType type, ModelWriter::Shape shape) {
    return model.addTensor(type, std::move(shape));
  };
  const int32_t mixed = result(TensorType::INT32, {4});
  model.addOperator(BuiltinOperator::BITWISE_XOR, {numbers, mask}, {mixed});
  const int32_t shifted = result(TensorType::INT32, {4});
  model.addOperator(BuiltinOperator::RIGHT_SHIFT, {numbers, mask}, {shifted});
  const int32_t real = result(TensorType::FLOAT32, {4});
  model.addOperator(BuiltinOperator::BITCAST, {mixed}, {real});
  const int32_t buckets = result(TensorType::INT32, {4});
  schema::BucketizeOptionsT options;
  options.boundaries = {-1, 0.5f, 3};
  model.addOperator(BuiltinOperator::BUCKETIZE, {shifted}, {buckets}, options);
  const int32_t matrix = result(TensorType::INT32, {4, 4});
  model.addOperator(BuiltinOperator::MATRIX_DIAG, {buckets}, {matrix});
  const int32_t diagonals = model.addTensor(TensorType::FLOAT32, {2, 2});
  const int32_t replaced = result(TensorType::FLOAT32, {2, 3, 2});
  model.addOperator(BuiltinOperator::MATRIX_SET_DIAG, {data, diagonals}, {replaced});
  model.setArguments({numbers, mask, data, diagonals}, {real, matrix, replaced});
  return model;
}

// Volumes: a convolution over three dimensions and its transposed form.
ModelWriter volumes() {
  ModelWriter model;
  const int32_t data = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 4, 2});
  const int32_t filter = weights(&model, TensorType::FLOAT32, {1, 2, 2, 2, 3});
  const int32_t bias = weights(&model, TensorType::FLOAT32, {3});
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

// A tensor that has one value except at a few places.
ModelWriter places() {
  ModelWriter model;
  const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
  const int32_t values = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t rest = model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {3, 4});
  model.addOperator(BuiltinOperator::SPARSE_TO_DENSE, {indices, model.ints({3, 4}), values, rest},
                    {output});
  model.setArguments({indices, values}, {output});
  return model;
}

// Numbers and classes drawn with seeds, whose positions are states.
ModelWriter random() {
  ModelWriter model;
  schema::RandomOptionsT options;
  options.seed = 1;
  options.seed2 = 2;
  const int32_t shape = model.ints({2, 3});
  const int32_t even = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::RANDOM_UNIFORM, {shape}, {even}, options);
  const int32_t normal = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::RANDOM_STANDARD_NORMAL, {shape}, {normal}, options);
  const int32_t logits = model.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t count = model.ints({5});
  const int32_t classes = model.addTensor(TensorType::INT32, {2, 5});
  model.addOperator(BuiltinOperator::MULTINOMIAL, {logits, count}, {classes}, options);
  model.setArguments({logits}, {even, normal, classes});
  return model;
}

// Distinct elements, whose number is known only at run time.
ModelWriter different() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {6});
  const int32_t found = model.addTensor(TensorType::INT32, {6});
  const int32_t places = model.addTensor(TensorType::INT32, {6});
  model.addOperator(BuiltinOperator::UNIQUE, {numbers}, {found, places}, schema::UniqueOptionsT());
  model.setArguments({numbers}, {found, places});
  return model;
}

// The custom operation at the end of an object detector, with options of its own.
ModelWriter detector() {
  ModelWriter model;
  const int32_t encodings = model.addTensor(TensorType::FLOAT32, {1, 3, 4});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {1, 3, 3});
  const int32_t anchors = weights(&model, TensorType::FLOAT32, {3, 4});
  std::vector<int32_t> outputs;
  for (const ModelWriter::Shape& shape : {ModelWriter::Shape{1, 4, 4}, {1, 4}, {1, 4}, {1}})
    outputs.push_back(model.addTensor(TensorType::FLOAT32, shape));
  model.addCustom("TFLite_Detection_PostProcess", {encodings, scores, anchors}, outputs,
                  flexMap({{"max_detections", 2},
                           {"max_classes_per_detection", 2},
                           {"num_classes", 2},
                           {"nms_score_threshold", 0.25},
                           {"nms_iou_threshold", 0.5},
                           {"y_scale", 10},
                           {"x_scale", 10},
                           {"h_scale", 5},
                           {"w_scale", 5},
                           {"use_regular_nms", 1}}));
  model.setArguments({encodings, scores}, outputs);
  return model;
}

// Bytes of 32-bit integers, as MediaPipe writes the options of its operations.
std::vector<uint8_t> structure(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes;
  for (const int32_t value : values)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
  return bytes;
}

// A picture that is pooled, put back and enlarged, as MediaPipe's networks for segmentation do.
ModelWriter unpooling() {
  ModelWriter model;
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 4, 6, 2});
  const int32_t maxima = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 2});
  const int32_t places = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 2});
  model.addCustom("MaxPoolingWithArgmax2D", {picture}, {maxima, places},
                  structure({2, 2, 2, 2, 2, 0}));
  const int32_t back = model.addTensor(TensorType::FLOAT32, {1, 4, 6, 2});
  model.addCustom("MaxUnpooling2D", {maxima, places}, {back}, structure({2, 2, 2, 2, 2, 0}));
  const int32_t filter = weights(&model, TensorType::FLOAT32, {1, 3, 3, 2});
  const int32_t bias = weights(&model, TensorType::FLOAT32, {1});
  const int32_t enlarged = model.addTensor(TensorType::FLOAT32, {1, 8, 12, 1});
  model.addCustom("Convolution2DTransposeBias", {back, filter, bias}, {enlarged},
                  structure({1, 2, 2}));
  model.setArguments({picture}, {places, enlarged});
  return model;
}

// The spectrogram with which TFLite's networks for speech begin, and how far its values in 8 bits
// are from it.
ModelWriter spectrogram() {
  ModelWriter model;
  const int32_t sound = model.addTensor(TensorType::FLOAT32, {10, 1});
  const int32_t spectra = model.addTensor(TensorType::FLOAT32, {1, 3, 5});
  model.addCustom("AudioSpectrogram", {sound}, {spectra},
                  flexMap({{"window_size", 6}, {"stride", 2}, {"magnitude_squared", 1}}));
  const int32_t rounded = model.addTensor(TensorType::INT8, {1, 3, 5}, 0.25f, -128);
  model.addOperator(BuiltinOperator::QUANTIZE, {spectra}, {rounded});
  const int32_t differences = model.addTensor(TensorType::FLOAT32, {1, 3, 5});
  model.addCustom("NumericVerify", {rounded, spectra}, {differences},
                  flexMap({{"tolerance", 5}, {"log_if_failed", 0}}));
  model.setArguments({sound}, {spectra, differences});
  return model;
}

// The cepstra that speech networks make of such a spectrogram.
ModelWriter cepstra() {
  ModelWriter model;
  const int32_t spectra = model.addTensor(TensorType::FLOAT32, {1, 2, 33});
  const int32_t rate = model.addConstant<int32_t>(TensorType::INT32, {}, {16000});
  const int32_t found = model.addTensor(TensorType::FLOAT32, {1, 2, 5});
  model.addCustom("Mfcc", {spectra, rate}, {found},
                  flexMap({{"lower_frequency_limit", 20},
                           {"upper_frequency_limit", 4000},
                           {"filterbank_channel_count", 8},
                           {"dct_coefficient_count", 5}}));
  model.setArguments({spectra}, {found});
  return model;
}

// Landmarks, the picture around some of them, and other landmarks there, in both versions of
// MediaPipe's operations.
ModelWriter landmarks() {
  ModelWriter model;
  const int32_t points = model.addTensor(TensorType::FLOAT32, {1, 4, 3});
  const int32_t line = model.addTensor(TensorType::FLOAT32, {1, 1, 1, 12});
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 4, 5, 2});
  std::vector<int32_t> outputs;
  for (const bool isFirst : {true, false}) {
    const int32_t version = isFirst ? 1 : 2;
    const int32_t matrix = model.addTensor(TensorType::FLOAT32, {1, 4, 4});
    const int32_t part = model.addTensor(TensorType::FLOAT32, {1, 3, 2, 2});
    const int32_t moved =
        model.addTensor(TensorType::FLOAT32,
                        isFirst ? ModelWriter::Shape{1, 1, 1, 12} : ModelWriter::Shape{1, 4, 3});
    const auto box =
        isFirst ? flexMap({{"dimensions", 3},
                           {"landmarks_range", 8},
                           {"bbox_size_multiplier", 1.5},
                           {"left_rotation_idx", 0},
                           {"right_rotation_idx", 1}},
                          {{"subset", {0, 1, 2}}, {"input_hw", {4, 5}}, {"output_hw", {3, 2}}})
                : flexMap({{"left_rotation_idx", 0},
                           {"right_rotation_idx", 1},
                           {"output_height", 3},
                           {"output_width", 2},
                           {"scale_x", 1.5},
                           {"scale_y", 1.5}},
                          {{"subset_idxs", {0, 1, 2}}});
    model.addCustom("Landmarks2TransformMatrix", {isFirst ? line : points}, {matrix}, box, version);
    model.addCustom("TransformTensorBilinear", {picture, matrix}, {part},
                    isFirst ? flexMap({}, {{"output_size", {3, 2}}})
                            : flexMap({{"output_height", 3}, {"output_width", 2}}),
                    version);
    model.addCustom("TransformLandmarks", {isFirst ? line : points, matrix}, {moved},
                    isFirst ? flexMap({{"dimensions", 3}, {"scale", 2}}) : std::vector<uint8_t>(),
                    version);
    outputs.insert(outputs.end(), {part, moved});
  }
  model.setArguments({points, line, picture}, outputs);
  return model;
}

// An operator that only a program can provide.
ModelWriter custom() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t factors = model.addConstant<int8_t>(TensorType::INT8, {3}, {1, 2, 3}, 0.5f, 0);
  const int32_t product = model.addTensor(TensorType::FLOAT32, {});
  model.addCustom("Sample", {numbers, -1, factors}, {product}, {1, 2, 3, 4});
  model.setArguments({numbers}, {product});
  return model;
}

// NON_MAX_SUPPRESSION in both versions; the number of boxes that the second keeps is an input.
ModelWriter suppressions() {
  ModelWriter model;
  const int32_t boxes = model.addTensor(TensorType::FLOAT32, {4, 4});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t length = model.addTensor(TensorType::INT32, {});
  const int32_t three = model.addConstant<int32_t>(TensorType::INT32, {}, {3});
  const int32_t half = model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f});
  const int32_t hard = model.addTensor(TensorType::INT32, {3});
  const int32_t hardCount = model.addTensor(TensorType::INT32, {});
  const int32_t soft = model.addTensor(TensorType::INT32, {});
  const int32_t lowered = model.addTensor(TensorType::FLOAT32, {});
  const int32_t softCount = model.addTensor(TensorType::INT32, {});
  model.addOperator(BuiltinOperator::NON_MAX_SUPPRESSION_V4, {boxes, scores, three, half, half},
                    {hard, hardCount});
  model.addOperator(BuiltinOperator::NON_MAX_SUPPRESSION_V5,
                    {boxes, scores, length, half, half, half}, {soft, lowered, softCount});
  model.setArguments({boxes, scores, length}, {hard, hardCount, soft, lowered, softCount});
  return model;
}

// Sizes, crops and counts that are known only at run time.
ModelWriter openSizes() {
  ModelWriter model;
  const int32_t image = model.addTensor(TensorType::FLOAT32, {4, 2, 2, 1});
  const int32_t crops = model.addTensor(TensorType::INT32, {2, 2});
  const int32_t size = model.addTensor(TensorType::INT32, {2});
  const int32_t count = model.addTensor(TensorType::INT64, {});
  const auto addOpen = [&](TensorType type, ModelWriter::Shape signature) {
    ModelWriter::Shape shape = signature;
    for (int32_t& dimension : shape)
      if (dimension < 0) dimension = 1;
    const int32_t tensor = model.addTensor(type, std::move(shape));
    model.tensor(tensor).shape_signature = std::move(signature);
    return tensor;
  };
  const int32_t cropped = addOpen(TensorType::FLOAT32, {1, -1, -1, 1});
  const int32_t resized = addOpen(TensorType::FLOAT32, {1, -1, -1, 1});
  const int32_t reshaped = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t rows = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t best = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t places = addOpen(TensorType::INT32, {-1, -1});
  const int32_t filled = addOpen(TensorType::INT64, {-1, -1});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {image, model.ints({2, 2}), crops},
                    {cropped});
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {cropped, size}, {resized});
  const int32_t row = model.addTensor(TensorType::INT32, {1, 2});
  model.addOperator(BuiltinOperator::RESHAPE, {size, model.ints({1, 2})}, {row});
  model.addOperator(BuiltinOperator::RESHAPE, {resized, row}, {reshaped});
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {reshaped, model.ints({0}), model.ints({9}), model.ints({2})}, {rows});
  model.addOperator(BuiltinOperator::TOPK_V2, {rows, count}, {best, places});
  model.addOperator(BuiltinOperator::FILL, {size, count}, {filled});
  model.setArguments({image, crops, size, count}, {best, places, filled});
  return model;
}

// Lists of indices, and rows that are combined by their numbers.
ModelWriter segments() {
  ModelWriter model;
  const int32_t data = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  const int32_t lists = model.addTensor(TensorType::INT32, {2, 3});
  const int32_t count = model.addTensor(TensorType::INT32, {});
  const int32_t gathered = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  schema::GatherOptionsT options;
  options.axis = 1;
  options.batch_dims = 1;
  model.addOperator(BuiltinOperator::GATHER, {data, lists}, {gathered}, options);
  std::vector<int32_t> outputs;
  for (const BuiltinOperator code :
       {BuiltinOperator::UNSORTED_SEGMENT_PROD, BuiltinOperator::UNSORTED_SEGMENT_MAX,
        BuiltinOperator::UNSORTED_SEGMENT_SUM, BuiltinOperator::UNSORTED_SEGMENT_MIN}) {
    outputs.push_back(model.addTensor(TensorType::FLOAT32, {1, 2}));
    model.tensor(outputs.back()).shape_signature = {-1, 2};
    model.addOperator(code, {gathered, lists, count}, {outputs.back()});
  }
  model.setArguments({data, lists, count}, outputs);
  return model;
}

// A counter that is read and assigned, and initialised by a subgraph that runs once.
ModelWriter resources() {
  ModelWriter model;
  const auto addHandle = [&] {
    const int32_t handle = model.addTensor(TensorType::RESOURCE, {1});
    schema::VarHandleOptionsT options;
    options.shared_name = "counter";
    model.addOperator(BuiltinOperator::VAR_HANDLE, {}, {handle}, options);
    return handle;
  };
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2});
  schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  const int32_t handle = addHandle();
  const int32_t before = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t after = model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::READ_VARIABLE, {handle}, {before});
  model.addOperator(BuiltinOperator::ADD_N, {before, input, input}, {after});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
  model.setArguments({input}, {after});
  model.addSubgraph("once");
  const int32_t inner = addHandle();
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {2}, {1, 2});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {inner, value}, {});
  return model;
}

// The words of a sentence, their numbers in a table that a subgraph fills, and which one is "b".
ModelWriter strings() {
  ModelWriter model;
  const int32_t sentence = model.addTensor(TensorType::STRING, {1});
  const int32_t words = model.addTensor(TensorType::STRING, {1, 1});
  model.tensor(words).shape_signature = {1, -1};
  model.addCustom("tftext:WhitespaceTokenizer", {sentence}, {words});
  schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  const int32_t table = model.addTable(5, TensorType::STRING, TensorType::INT64);
  const int32_t missing = model.addConstant<int64_t>(TensorType::INT64, {1}, {-1});
  const int32_t numbers = model.addTensor(TensorType::INT64, {1, 1});
  model.tensor(numbers).shape_signature = {1, -1};
  model.addOperator(BuiltinOperator::HASHTABLE_FIND, {table, words, missing}, {numbers});
  const int32_t size = model.addTensor(TensorType::INT64, {1});
  model.addOperator(BuiltinOperator::HASHTABLE_SIZE, {table}, {size});
  const int32_t isB = model.addTensor(TensorType::BOOL, {1, 1});
  model.tensor(isB).shape_signature = {1, -1};
  model.addOperator(BuiltinOperator::EQUAL, {words, model.addStrings({1}, {"b"})}, {isB});
  model.setArguments({sentence}, {words, numbers, size, isB});
  model.addSubgraph("once");
  const int32_t inner = model.addTable(5, TensorType::STRING, TensorType::INT64);
  const int32_t keys = model.addStrings({3}, {"c", "a", "b"});
  const int32_t values = model.addConstant<int64_t>(TensorType::INT64, {3}, {30, 10, 20});
  model.addOperator(BuiltinOperator::HASHTABLE_IMPORT, {inner, keys, values}, {});
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

ModelWriter controlFlow() {
  ModelWriter model;
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::BOOL, {1});
  model.addTensor(TensorType::INT32, {1});
  addWhile(&model);
  schema::IfOptionsT branch;
  branch.then_subgraph_index = 2;
  branch.else_subgraph_index = 3;
  model.addOperator(BuiltinOperator::IF, {2, 1}, {3}, branch);
  model.setArguments({0, 2}, {3});
  addCountingLoop(&model);
  model.addSubgraph("identity");
  model.addTensor(TensorType::INT32, {1});
  model.setArguments({0}, {0});
  return model;
}

// As converters of TensorFlow 1 wrote a picture that is enlarged to twice its size: no shape behind
// the input is known.
ModelWriter unsaidShapes() {
  ModelWriter model;
  const auto unknown = [&](TensorType type) {
    return model.addTensor(type, {});
  };
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 1});
  const int32_t shape = unknown(TensorType::INT32);
  model.addOperator(BuiltinOperator::SHAPE, {picture}, {shape});
  std::vector<int32_t> sides;
  schema::StridedSliceOptionsT one;
  one.shrink_axis_mask = 1;
  for (const int32_t axis : {1, 2}) {
    const int32_t side = unknown(TensorType::INT32);
    model.addOperator(BuiltinOperator::STRIDED_SLICE,
                      {shape, model.ints({axis}), model.ints({axis + 1}), model.ints({1})}, {side},
                      one);
    sides.push_back(unknown(TensorType::INT32));
    model.addOperator(BuiltinOperator::MUL, {side, model.ints({2})}, {sides.back()});
  }
  const int32_t size = unknown(TensorType::INT32);
  schema::PackOptionsT pack;
  pack.values_count = 2;
  model.addOperator(BuiltinOperator::PACK, sides, {size}, pack);
  const int32_t list = unknown(TensorType::INT32);
  model.addOperator(BuiltinOperator::RESHAPE, {size, model.ints({2})}, {list});
  const int32_t enlarged = unknown(TensorType::FLOAT32);
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {picture, list}, {enlarged});
  const int32_t joined = unknown(TensorType::FLOAT32);
  schema::ConcatenationOptionsT concatenation;
  concatenation.axis = 3;
  model.addOperator(BuiltinOperator::CONCATENATION, {enlarged, enlarged}, {joined}, concatenation);
  const int32_t mean = unknown(TensorType::FLOAT32);
  model.addOperator(BuiltinOperator::MEAN, {joined, model.ints({0, 1, 2, 3})}, {mean});
  model.setArguments({picture}, {joined, mean});
  return model;
}

}  // namespace

void addWhile(ModelWriter* model) {
  schema::WhileOptionsT options;
  options.cond_subgraph_index = 1;
  options.body_subgraph_index = 2;
  model->addOperator(BuiltinOperator::WHILE, {0}, {1}, options);
}

void addCountingLoop(ModelWriter* model) {
  model->addSubgraph("condition");
  model->addTensor(TensorType::INT32, {1});
  model->addTensor(TensorType::BOOL, {1});
  model->addOperator(BuiltinOperator::LESS, {0, model->ints({10})}, {1});
  model->setArguments({0}, {1});
  model->addSubgraph("body");
  model->addTensor(TensorType::INT32, {1});
  model->addTensor(TensorType::INT32, {1});
  model->addOperator(BuiltinOperator::ADD, {0, model->ints({1})}, {1});
  model->setArguments({0}, {1});
}

std::vector<SampleModel> sampleModels() {
  return {{"conv_float", convolutions(TensorType::FLOAT32).write()},
          {"conv_int8", convolutions(TensorType::INT8).write()},
          {"conv_uint8", convolutions(TensorType::UINT8).write()},
          {"elementwise", elementwise().write()},
          {"quantised", quantised().write()},
          {"shapes", shapes().write()},
          {"space", space().write()},
          {"reductions", reductions().write()},
          {"lookups", lookups().write()},
          {"lstm_float", lstm(TensorType::FLOAT32).write()},
          {"lstm_int8", lstm(TensorType::INT8).write()},
          {"recurrent", recurrent().write()},
          {"svdf_int8", integerSvdf().write()},
          {"sparse", sparse().write()},
          {"transformer", transformer().write()},
          {"composites", composites().write()},
          {"indices", indices().write()},
          {"spectrum", spectrum().write()},
          {"bits", bits().write()},
          {"different", different().write()},
          {"volumes", volumes().write()},
          {"random", random().write()},
          {"places", places().write()},
          {"detector", detector().write()},
          {"spectrogram", spectrogram().write()},
          {"cepstra", cepstra().write()},
          {"landmarks", landmarks().write()},
          {"suppressions", suppressions().write()},
          {"custom", custom().write()},
          {"open_sizes", openSizes().write()},
          {"segments", segments().write()},
          {"unpooling", unpooling().write()},
          {"unsaid_shapes", unsaidShapes().write()},
          {"resources", resources().write()},
          {"strings", strings().write()},
          {"control_flow", controlFlow().write()}};
}

}  // namespace hearth::tflite
