// SPDX-License-Identifier: Apache-2.0
#include "hal/cts/model_builder.h"

#include <utility>

namespace hearth::hal::cts {

using graph::Lifetime;
using graph::OperandType;
using graph::OperationType;

namespace {

constexpr OperandType kFloat = OperandType::kTensorFloat32;
constexpr OperandType kUint8 = OperandType::kTensorQuant8Asymm;
constexpr OperandType kInt8 = OperandType::kTensorQuant8AsymmSigned;
constexpr int32_t kNoActivation = 0;
constexpr int32_t kSamePadding = 1;
constexpr int32_t kValidPadding = 2;

template <typename T>
std::vector<T> ramp(size_t count, int step = 1) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<int>(i * static_cast<size_t>(step) % 13) - 6);
  return values;
}

}  // namespace

graph::Operand ModelBuilder::make(OperandType type, graph::Dimensions dimensions, float scale,
                                  int32_t zeroPoint) {
  return {
      .type = type, .dimensions = std::move(dimensions), .scale = scale, .zeroPoint = zeroPoint};
}

uint32_t ModelBuilder::add(graph::Operand operand) {
  auto& operands = current().operands;
  operands.push_back(std::move(operand));
  return static_cast<uint32_t>(operands.size() - 1);
}

uint32_t ModelBuilder::addTo(std::vector<uint32_t>& list, graph::Operand operand,
                             Lifetime lifetime) {
  operand.lifetime = lifetime;
  list.push_back(add(std::move(operand)));
  return list.back();
}

uint32_t ModelBuilder::input(OperandType type, graph::Dimensions dimensions, float scale,
                             int32_t zeroPoint) {
  return addTo(current().inputs, make(type, std::move(dimensions), scale, zeroPoint),
               Lifetime::kSubgraphInput);
}

uint32_t ModelBuilder::output(OperandType type, graph::Dimensions dimensions, float scale,
                              int32_t zeroPoint) {
  return addTo(current().outputs, make(type, std::move(dimensions), scale, zeroPoint),
               Lifetime::kSubgraphOutput);
}

uint32_t ModelBuilder::temporary(OperandType type, graph::Dimensions dimensions, float scale,
                                 int32_t zeroPoint) {
  return add(make(type, std::move(dimensions), scale, zeroPoint));
}

uint32_t ModelBuilder::omitted(OperandType type) {
  graph::Operand operand = make(type, {}, 0.0f, 0);
  operand.lifetime = Lifetime::kNoValue;
  return add(std::move(operand));
}

uint32_t ModelBuilder::copiedConstant(graph::Operand operand, const void* data, size_t size) {
  auto& bytes = model_.constantBytes;
  bytes.resize((bytes.size() + 15) / 16 * 16);
  operand.lifetime = Lifetime::kConstantCopy;
  operand.location = {0, bytes.size(), size};
  const auto* begin = static_cast<const uint8_t*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
  return add(std::move(operand));
}

uint32_t ModelBuilder::scalar(int32_t value) {
  return copiedConstant(make(OperandType::kInt32, {}, 0.0f, 0), &value, sizeof(value));
}
uint32_t ModelBuilder::scalar(float value) {
  return copiedConstant(make(OperandType::kFloat32, {}, 0.0f, 0), &value, sizeof(value));
}
uint32_t ModelBuilder::scalar(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return copiedConstant(make(OperandType::kBool, {}, 0.0f, 0), &byte, sizeof(byte));
}

uint32_t ModelBuilder::reference(OperandType type, graph::Dimensions dimensions,
                                 memory::PoolRef pool, uint64_t offset, float scale,
                                 int32_t zeroPoint) {
  graph::Operand operand = make(type, std::move(dimensions), scale, zeroPoint);
  operand.lifetime = Lifetime::kConstantReference;
  const auto bytes = graph::byteSize(operand);
  operand.location = {static_cast<uint32_t>(model_.pools.size()), offset, bytes ? *bytes : 0};
  model_.pools.push_back(std::move(pool));
  return add(std::move(operand));
}

uint32_t ModelBuilder::beginSubgraph() {
  current_ = model_.subgraphs.size();
  model_.subgraphs.emplace_back();
  return static_cast<uint32_t>(current_);
}

uint32_t ModelBuilder::subgraphOperand(uint32_t subgraph) {
  graph::Operand operand = make(OperandType::kModel, {}, 0.0f, 0);
  operand.lifetime = Lifetime::kSubgraph;
  operand.subgraphIndex = subgraph;
  return add(std::move(operand));
}

void ModelBuilder::operation(OperationType type, std::vector<uint32_t> inputs,
                             std::vector<uint32_t> outputs) {
  current().operations.push_back({type, std::move(inputs), std::move(outputs), ""});
}

graph::Model addModel(const graph::Dimensions& a, const graph::Dimensions& b,
                      const graph::Dimensions& sum) {
  ModelBuilder builder;
  const uint32_t left = builder.input(kFloat, a);
  const uint32_t right = builder.input(kFloat, b);
  const uint32_t activation = builder.scalar(kNoActivation);
  builder.operation(OperationType::kAdd, {left, right, activation}, {builder.output(kFloat, sum)});
  return builder.model();
}

graph::Model chainModel(const graph::Dimensions& dimensions) {
  ModelBuilder builder;
  const uint32_t a = builder.input(kFloat, dimensions);
  const uint32_t b = builder.input(kFloat, dimensions);
  const uint32_t activation = builder.scalar(kNoActivation);
  const uint32_t sum = builder.temporary(kFloat, dimensions);
  const uint32_t product = builder.temporary(kFloat, dimensions);
  builder.operation(OperationType::kAdd, {a, b, activation}, {sum});
  builder.operation(OperationType::kMul, {sum, a, activation}, {product});
  builder.operation(OperationType::kSub, {product, b, activation},
                    {builder.output(kFloat, dimensions)});
  return builder.model();
}

graph::Model convolutionModel(uint32_t size) {
  ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {1, size, size, 3});
  const uint32_t filter =
      builder.constant(kFloat, {4, 3, 3, 3}, std::vector<float>(4 * 3 * 3 * 3, 1.0f));
  const uint32_t bias = builder.constant(kFloat, {4}, std::vector<float>{0.0f, 1.0f, 2.0f, 3.0f});
  const uint32_t one = builder.scalar(1);
  builder.operation(
      OperationType::kConv2d,
      {in, filter, bias, builder.scalar(kSamePadding), one, one, builder.scalar(kNoActivation)},
      {builder.output(kFloat, {1, size, size, 4})});
  return builder.model();
}

namespace {

struct Quantization {
  OperandType type;
  float scale;
  int32_t zeroPoint;
};

uint32_t inputOf(ModelBuilder& builder, const graph::Dimensions& dimensions,
                 const Quantization& type) {
  return builder.input(type.type, dimensions, type.scale, type.zeroPoint);
}

uint32_t outputOf(ModelBuilder& builder, const graph::Dimensions& dimensions,
                  const Quantization& type) {
  return builder.output(type.type, dimensions, type.scale, type.zeroPoint);
}

// A convolution of [1,5,7,3], depthwise if asked for, in one of three types.
graph::Model quantizedConvolution(const Quantization& quantization, bool isDepthwise) {
  ModelBuilder builder;
  const bool isFloat = quantization.type == kFloat;
  const uint32_t channels = isDepthwise ? 3 : 5;
  const uint32_t in = inputOf(builder, {1, 5, 7, 3}, quantization);
  const graph::Dimensions filterDimensions =
      isDepthwise ? graph::Dimensions{1, 3, 3, 3} : graph::Dimensions{5, 3, 3, 3};
  const size_t filterSize = isDepthwise ? 27 : 135;
  const uint32_t filter =
      isFloat ? builder.constant(kFloat, filterDimensions, ramp<float>(filterSize, 5))
              : builder.constant(quantization.type, filterDimensions, ramp<int8_t>(filterSize, 5),
                                 0.25f, quantization.type == kUint8 ? 128 : 0);
  const uint32_t bias = isFloat
                            ? builder.constant(kFloat, {channels}, ramp<float>(channels))
                            : builder.constant(OperandType::kTensorInt32, {channels},
                                               ramp<int32_t>(channels), 0.25f * quantization.scale);
  const uint32_t out = builder.output(quantization.type, {1, 5, 7, channels}, isFloat ? 0.0f : 2.0f,
                                      quantization.zeroPoint);
  const uint32_t one = builder.scalar(1);
  std::vector<uint32_t> inputs = {in, filter, bias, builder.scalar(kSamePadding), one, one};
  if (isDepthwise) inputs.push_back(one);
  inputs.push_back(builder.scalar(kNoActivation));
  builder.operation(isDepthwise ? OperationType::kDepthwiseConv2d : OperationType::kConv2d, inputs,
                    {out});
  return builder.model();
}

graph::Model fullyConnected(const Quantization& quantization) {
  ModelBuilder builder;
  const bool isFloat = quantization.type == kFloat;
  const uint32_t in = inputOf(builder, {3, 11}, quantization);
  const uint32_t weights = isFloat
                               ? builder.constant(kFloat, {7, 11}, ramp<float>(77, 5))
                               : builder.constant(quantization.type, {7, 11}, ramp<int8_t>(77, 5),
                                                  0.25f, quantization.type == kUint8 ? 128 : 0);
  const uint32_t bias = isFloat ? builder.constant(kFloat, {7}, ramp<float>(7))
                                : builder.constant(OperandType::kTensorInt32, {7}, ramp<int32_t>(7),
                                                   0.25f * quantization.scale);
  builder.operation(
      OperationType::kFullyConnected, {in, weights, bias, builder.scalar(kNoActivation)},
      {builder.output(quantization.type, {3, 7}, isFloat ? 0.0f : 2.0f, quantization.zeroPoint)});
  return builder.model();
}

graph::Model pooling(OperationType type, const Quantization& quantization) {
  ModelBuilder builder;
  const uint32_t in = inputOf(builder, {1, 5, 7, 3}, quantization);
  const uint32_t out = outputOf(builder, {1, 4, 6, 3}, quantization);
  const uint32_t one = builder.scalar(1);
  const uint32_t two = builder.scalar(2);
  builder.operation(
      type, {in, builder.scalar(kValidPadding), one, one, two, two, builder.scalar(kNoActivation)},
      {out});
  return builder.model();
}

// An operation on one tensor whose output has the same shape.
graph::Model unary(OperationType type, const Quantization& quantization,
                   const Quantization& outQuantization) {
  ModelBuilder builder;
  const uint32_t in = inputOf(builder, {3, 7}, quantization);
  const uint32_t out = builder.output(outQuantization.type, {3, 7}, outQuantization.scale,
                                      outQuantization.zeroPoint);
  std::vector<uint32_t> inputs = {in};
  if (type == OperationType::kSoftmax) inputs.push_back(builder.scalar(1.0f));
  builder.operation(type, inputs, {out});
  return builder.model();
}

graph::Model binary(OperationType type, const Quantization& quantization, bool isConstant) {
  ModelBuilder builder;
  const uint32_t a = inputOf(builder, {3, 7}, quantization);
  uint32_t b;
  if (!isConstant)
    b = inputOf(builder, {1, 7}, quantization);
  else if (quantization.type == kFloat)
    b = builder.constant(kFloat, {7}, ramp<float>(7));
  else
    b = builder.constant(quantization.type, {7}, ramp<int8_t>(7), quantization.scale,
                         quantization.zeroPoint);
  builder.operation(
      type, {a, b, builder.scalar(kNoActivation)},
      {builder.output(quantization.type, {3, 7}, quantization.scale * 2, quantization.zeroPoint)});
  return builder.model();
}

graph::Model concatenation(const Quantization& quantization) {
  ModelBuilder builder;
  const uint32_t a = inputOf(builder, {3, 5}, quantization);
  const uint32_t b = inputOf(builder, {3, 2}, quantization);
  builder.operation(OperationType::kConcatenation, {a, b, builder.scalar(1)},
                    {outputOf(builder, {3, 7}, quantization)});
  return builder.model();
}

graph::Model reshape(const Quantization& quantization) {
  ModelBuilder builder;
  const uint32_t in = inputOf(builder, {3, 7}, quantization);
  const uint32_t shape =
      builder.constant(OperandType::kTensorInt32, {2}, std::vector<int32_t>{7, -1});
  builder.operation(OperationType::kReshape, {in, shape},
                    {outputOf(builder, {7, 3}, quantization)});
  return builder.model();
}

graph::Model resize(const Quantization& quantization) {
  ModelBuilder builder;
  const uint32_t in = inputOf(builder, {1, 3, 5, 3}, quantization);
  builder.operation(OperationType::kResizeBilinear, {in, builder.scalar(9), builder.scalar(7)},
                    {outputOf(builder, {1, 7, 9, 3}, quantization)});
  return builder.model();
}

graph::Model mean() {
  ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {1, 5, 7, 3});
  const uint32_t axes =
      builder.constant(OperandType::kTensorInt32, {2}, std::vector<int32_t>{1, 2});
  builder.operation(OperationType::kMean, {in, axes, builder.scalar(0)},
                    {builder.output(kFloat, {1, 3})});
  return builder.model();
}

}  // namespace

std::vector<NamedModel> sampleModels() {
  const Quantization real = {kFloat, 0.0f, 0};
  const Quantization uint8 = {kUint8, 0.5f, 128};
  const Quantization int8 = {kInt8, 0.5f, -3};
  std::vector<NamedModel> models = {
      {"chain", chainModel({3, 7})},
      {"mean", mean()},
  };
  for (const auto& [suffix, type] :
       {std::pair("float", real), std::pair("uint8", uint8), std::pair("int8", int8)}) {
    const Quantization probability = type.type == kFloat   ? real
                                     : type.type == kUint8 ? Quantization{kUint8, 1.0f / 256, 0}
                                                           : Quantization{kInt8, 1.0f / 256, -128};
    const auto add = [&](const char* kind, graph::Model model) {
      models.push_back({std::string(kind) + "_" + suffix, std::move(model)});
    };
    add("add", binary(OperationType::kAdd, type, false));
    add("add_constant", binary(OperationType::kAdd, type, true));
    add("mul", binary(OperationType::kMul, type, false));
    add("mul_constant", binary(OperationType::kMul, type, true));
    add("convolution", quantizedConvolution(type, false));
    add("depthwise", quantizedConvolution(type, true));
    add("fully_connected", fullyConnected(type));
    add("average_pool", pooling(OperationType::kAveragePool2d, type));
    add("max_pool", pooling(OperationType::kMaxPool2d, type));
    add("relu6", unary(OperationType::kRelu6, type, type));
    add("logistic", unary(OperationType::kLogistic, type, probability));
    add("softmax", unary(OperationType::kSoftmax, type, probability));
    add("concatenation", concatenation(type));
    add("reshape", reshape(type));
    add("resize", resize(type));
  }
  return models;
}

}  // namespace hearth::hal::cts
