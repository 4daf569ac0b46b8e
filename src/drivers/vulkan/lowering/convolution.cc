// SPDX-License-Identifier: Apache-2.0
// Convolutions and fully connected layers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/vulkan/lowering/factors.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/plan/products.h"
#include "ops/conv_2d.h"
#include "ops/fully_connected.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;

bool isQuantizedLayer(const LoweringContext& context) {
  return graph::isQuantized(context.input(0).type());
}

// Of 8 bits with a sign.
bool isSigned(OperandType weights) {
  return weights == OperandType::kTensorQuant8AsymmSigned ||
         weights == OperandType::kTensorQuant8Symm ||
         weights == OperandType::kTensorQuant8SymmPerChannel;
}

// float32 data, and weights of 8 bits.
bool isHybridLayer(const LoweringContext& context) {
  return context.input(0).type() == OperandType::kTensorFloat32 &&
         isSigned(context.input(1).type());
}

// "convolution.f32", "convolution.u8i8": the types of data and weights.
Result<std::string> shaderOf(const LoweringContext& context, const char* name) {
  const OperandType data = context.input(0).type();
  const OperandType weights = context.input(1).type();
  const auto unsupported = [&] {
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {} with weights of {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(data),
                graph::nameOf(weights));
  };
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(data));
  if (context.output(0).type() != data) return unsupported();
  if (!isQuantizedLayer(context)) {
    if (weights != data && !isHybridLayer(context)) return unsupported();
    if (context.operation().hasInput(2) && context.input(2).type() != data) return unsupported();
    return std::string(name) + "." + suffix + (weights == data ? "" : "i8");
  }
  if (context.operation().hasInput(2) && context.input(2).type() != OperandType::kTensorInt32)
    return unsupported();
  if (!isSigned(weights) && weights != OperandType::kTensorQuant8Asymm) return unsupported();
  return std::string(name) + "." + suffix + (isSigned(weights) ? "i8" : "u8");
}

// For each output channel the scale of its weights.
std::vector<double> scalesOf(const graph::Operand& weights, uint32_t channels) {
  const auto& scales = weights.perChannel.scales;
  if (scales.empty()) return std::vector<double>(channels, weights.scale);
  return {scales.begin(), scales.end()};
}

// What the sums of each output channel are multiplied by, as the reference kernels compute it.
std::vector<uint8_t> factorsOf(const graph::Operand& data, const graph::Operand& weights,
                               const graph::Operand& output, uint32_t channels) {
  const double ratio = data.scale / double{output.scale};
  std::vector<double> factors = scalesOf(weights, channels);
  for (double& factor : factors) factor *= ratio;
  return factorBytes(factors);
}

// The same for hybrid layers, whose sums count steps of weights.
std::vector<uint8_t> weightScales(const graph::Operand& weights, uint32_t channels) {
  std::vector<float> scales;
  for (const double scale : scalesOf(weights, channels))
    scales.push_back(static_cast<float>(scale));
  std::vector<uint8_t> bytes(scales.size() * sizeof(float));
  std::memcpy(bytes.data(), scales.data(), bytes.size());
  return bytes;
}

// The shape of a layer, as its shaders take it.
struct Layer {
  ops::ImageShape input, output;
  ops::Window2d window;
  bool isNchw = false;
  uint32_t groupInputs = 0;
  uint32_t groupOutputs = 0;
  ops::FusedActivation activation = ops::FusedActivation::kNone;
};

// Replaces the data of a hybrid layer by what it makes of them, row by row.
Status roundData(LoweringContext& context, uint32_t rows, TensorId* data) {
  const uint64_t count = context.input(0).elementCount();
  const TensorId rounded = context.addTemporary(count * sizeof(float));
  Dispatch dispatch;
  dispatch.shader = "round_rows.f32";
  dispatch.bindings = {{*data}, {rounded, true}};
  dispatch.parameters = {rows, static_cast<uint32_t>(count / rows)};
  *data = rounded;
  return context.addRows(std::move(dispatch), rows);
}

Result<Dispatch> dispatchOf(LoweringContext& context, const char* shader, const Layer& layer) {
  Dispatch dispatch;
  HEARTH_ASSIGN(dispatch.shader, shaderOf(context, shader));
  const graph::Operand& data = *context.input(0).operand;
  const graph::Operand& weights = *context.input(1).operand;
  const graph::Operand& output = *context.output(0).operand;
  const bool hasBias = context.operation().hasInput(2);
  // A binding without use has to have a buffer, too.
  dispatch.bindings = {{context.inputTensor(0)},
                       {context.inputTensor(1)},
                       {context.inputTensor(hasBias ? 2 : 1)},
                       {context.outputTensor(0), true}};
  if (isQuantizedLayer(context)) {
    const uint32_t channels = layer.output.channels;
    dispatch.bindings.push_back({context.addConstant(
        channels * kFactorBytes,
        [&data, &weights, &output, channels]() -> Result<std::vector<uint8_t>> {
          return factorsOf(data, weights, output, channels);
        })});
  } else if (isHybridLayer(context)) {
    const uint32_t channels = layer.output.channels;
    HEARTH_TRY(roundData(context, layer.input.batches, &dispatch.bindings[0].tensor));
    dispatch.bindings.push_back({context.addConstant(
        channels * sizeof(float), [&weights, channels]() -> Result<std::vector<uint8_t>> {
          return weightScales(weights, channels);
        })});
  }
  const ops::Window2d& w = layer.window;
  dispatch.products =
      context.output(0).elementCount() * layer.groupInputs *
      (static_cast<uint64_t>(w.filterHeight) * static_cast<uint64_t>(w.filterWidth));
  const auto [lowest, highest] = activationLimits(layer.activation, output);
  dispatch.parameters = {layer.output.height,     layer.output.width,     layer.output.batches,
                         layer.input.height,      layer.input.width,      layer.groupInputs,
                         layer.groupOutputs,      bitsOf(w.filterHeight), bitsOf(w.filterWidth),
                         bitsOf(w.strideHeight),  bitsOf(w.strideWidth),  bitsOf(w.dilationHeight),
                         bitsOf(w.dilationWidth), bitsOf(w.padding.top),  bitsOf(w.padding.left)};
  appendStrides(ops::ImageLayout(layer.input, layer.isNchw), &dispatch.parameters);
  appendStrides(ops::ImageLayout(layer.output, layer.isNchw), &dispatch.parameters);
  dispatch.parameters.insert(dispatch.parameters.end(),
                             {hasBias ? 1u : 0u, lowest, highest, bitsOf(data.zeroPoint),
                              bitsOf(weights.zeroPoint), bitsOf(output.zeroPoint)});
  return dispatch;
}

Status addProduct(LoweringContext& context, const Layer& layer, uint32_t groups) {
  HEARTH_ASSIGN(Dispatch dispatch, dispatchOf(context, "convolution", layer));
  const uint64_t places = uint64_t{layer.output.batches} * layer.output.height * layer.output.width;
  dispatch.groups = {productGroups(places), productGroups(layer.groupOutputs), groups};
  return context.add(std::move(dispatch));
}

Layer layerOf(const ops::Conv2dParameters& p) {
  return {p.input,     p.output, p.window, p.isNchw, p.groupInputChannels, p.groupOutputChannels,
          p.activation};
}

}  // namespace

Status lowerConvolution(LoweringContext& context) {
  const bool isGrouped = context.operation().operation->type == ops::OperationType::kGroupedConv2d;
  HEARTH_ASSIGN(const ops::Conv2dParameters parameters,
                isGrouped ? ops::parseGroupedConv2d(context.operation())
                          : ops::parseConv2d(context.operation()));
  return addProduct(context, layerOf(parameters), parameters.groups);
}

Status lowerDepthwiseConvolution(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::Conv2dParameters parameters,
                ops::parseDepthwiseConv2d(context.operation()));
  Layer layer = layerOf(parameters);
  layer.groupInputs = parameters.input.channels;
  HEARTH_ASSIGN(Dispatch dispatch, dispatchOf(context, "depthwise", layer));
  dispatch.products /= layer.groupInputs;
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

Status lowerTransposedConvolution(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::TransposeConv2dParameters p,
                ops::parseTransposeConv2d(context.operation()));
  const Layer layer{p.input,          p.output,          p.window,    p.isNchw,
                    p.input.channels, p.output.channels, p.activation};
  HEARTH_ASSIGN(Dispatch dispatch, dispatchOf(context, "transposed", layer));
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

// A convolution over images of one place.
Status lowerFullyConnected(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::FullyConnectedParameters parameters,
                ops::parseFullyConnected(context.operation()));
  if (context.operation().hasInput(4))
    return fail(ErrorCode::kUnsupported,
                "The GPU driver has no FULLY_CONNECTED with scales for runs of weights.");
  Layer layer;
  layer.input = {parameters.batches, 1, 1, parameters.inputSize};
  layer.output = {parameters.batches, 1, 1, parameters.units};
  layer.groupInputs = parameters.inputSize;
  layer.groupOutputs = parameters.units;
  layer.activation = parameters.activation;
  return addProduct(context, layer, 1);
}

}  // namespace hearth::vulkan
