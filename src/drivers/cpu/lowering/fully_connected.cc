// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/fully_connected.h"

#include <vector>

#include "drivers/cpu/kernels/f32_layer.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/kernels/xnn_setup.h"
#include "drivers/cpu/lowering/avx2_layer.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/f16w_layer.h"
#include "drivers/cpu/lowering/hybrid_fully_connected.h"
#include "drivers/cpu/lowering/int4_fully_connected.h"
#include "drivers/cpu/lowering/layer_arithmetic.h"
#include "drivers/cpu/lowering/packing_parts.h"
#include "drivers/cpu/lowering/preferred_kernel.h"
#include "drivers/cpu/lowering/qs16_layer.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

struct Creation : LayerPacking, LayerArithmetic {
  FullyConnected layer;
  ChannelRange channels;
  OperandType type = OperandType::kTensorFloat32;
  bool isPerChannel = false;
  const void* kernel = nullptr;          // of the first channel, as are bias and scales
  ConvertedConstantRef convertedKernel;  // in place of `kernel`
  const void* bias = nullptr;
  std::shared_ptr<const float> kernelScales;
  std::span<const uint8_t> released;  // what packing may release of `kernel`
  ValueId source = 0, destination = 0;
};

xnn_status createFrom(const Creation& c, const void* kernel, xnn_operator_t* op) {
  const size_t in = c.layer.inputChannels;
  const size_t out = c.channels.count;
  const size_t stride = c.layer.outputChannels;
  xnn_weights_cache_t cache = c.weights->provider();
  switch (c.type) {
    case OperandType::kTensorFloat32:
      return xnn_create_fully_connected_nc_f32(
          in, out, in, stride, static_cast<const float*>(kernel), static_cast<const float*>(c.bias),
          c.floats.lowest, c.floats.highest, 0, nullptr, cache, op);
    case OperandType::kTensorQuant8Asymm:
      return xnn_create_fully_connected_nc_qu8(
          in, out, in, stride, static_cast<uint8_t>(c.inputZero), c.inputScale,
          static_cast<uint8_t>(c.kernelZero), c.kernelScale, static_cast<const uint8_t*>(kernel),
          static_cast<const int32_t*>(c.bias), static_cast<uint8_t>(c.outputZero), c.outputScale,
          static_cast<uint8_t>(c.steps.lowest), static_cast<uint8_t>(c.steps.highest), 0, nullptr,
          cache, op);
    default:
      if (c.isPerChannel)
        return xnn_create_fully_connected_nc_qs8_qc8w(
            in, out, in, stride, static_cast<int8_t>(c.inputZero), c.inputScale,
            c.kernelScales.get(), static_cast<const int8_t*>(kernel),
            static_cast<const int32_t*>(c.bias), static_cast<int8_t>(c.outputZero), c.outputScale,
            static_cast<int8_t>(c.steps.lowest), static_cast<int8_t>(c.steps.highest), 0, nullptr,
            cache, op);
      return xnn_create_fully_connected_nc_qs8(
          in, out, in, stride, static_cast<int8_t>(c.inputZero), c.inputScale, c.kernelScale,
          static_cast<const int8_t*>(kernel), static_cast<const int32_t*>(c.bias),
          static_cast<int8_t>(c.outputZero), c.outputScale, static_cast<int8_t>(c.steps.lowest),
          static_cast<int8_t>(c.steps.highest), 0, nullptr, cache, op);
  }
}

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  constexpr char kKind[] = "FULLY_CONNECTED";
  const auto make = [&](const void* kernel) {
    return createFrom(c, kernel, op);
  };
  if (c.convertedKernel != nullptr)
    return c.weights->createConverted(
        c.place, kKind, c.packed.get(), [&] { return c.convertedKernel->convert(); }, make);
  const size_t channelBytes = c.layer.inputChannels * graph::elementSize(c.type);
  return createInParts(
      c, kKind, c.channels.count, channelBytes, c.released,
      [&](ChannelRange channels, xnn_operator_t* partOp) {
        Creation part = creationOfPart(c, channels);
        part.channels.count = channels.count;
        return createFrom(
            part, static_cast<const uint8_t*>(c.kernel) + channels.first * channelBytes, partOp);
      },
      [&] { return make(c.kernel); });
}

xnn_status reshapeOperator(const Creation& c, xnn_operator_t op, pthreadpool_t pool) {
  switch (c.type) {
    case OperandType::kTensorFloat32:
      return xnn_reshape_fully_connected_nc_f32(op, c.layer.rows, pool);
    case OperandType::kTensorQuant8Asymm:
      return xnn_reshape_fully_connected_nc_qu8(op, c.layer.rows, pool);
    default:
      return c.isPerChannel ? xnn_reshape_fully_connected_nc_qs8_qc8w(op, c.layer.rows, pool)
                            : xnn_reshape_fully_connected_nc_qs8(op, c.layer.rows, pool);
  }
}

xnn_status setupOperator(const Creation& c, xnn_operator_t op, std::span<void* const> at) {
  const void* in = at[c.source];
  void* out =
      static_cast<uint8_t*>(at[c.destination]) + c.channels.first * graph::elementSize(c.type);
  return setupTyped(
      c.type, op, in, out, xnn_setup_fully_connected_nc_f32, xnn_setup_fully_connected_nc_qu8,
      c.isPerChannel ? xnn_setup_fully_connected_nc_qs8_qc8w : xnn_setup_fully_connected_nc_qs8);
}

Result<std::unique_ptr<Kernel>> makeKernel(std::shared_ptr<const Creation> creation) {
  const Creation& c = *creation;
  xnn_operator_t op = nullptr;
  const xnn_status status = createOperator(c, &op);
  XnnCalls calls;
  calls.reshape = [creation](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
    return reshapeOperator(*creation, o, pool);
  };
  calls.setup = [creation](xnn_operator_t o, void*, std::span<void* const> at) {
    return setupOperator(*creation, o, at);
  };
  calls.hint = hintOf(c, c.channels.count);
  return makeXnnKernel("fully_connected_nc", status, op, std::move(calls));
}

// Makes the kernel of the same float32 layer on a product of ours.
Result<std::unique_ptr<Kernel>> makeOwnKernel(const Creation& c) {
  HEARTH_TRY(packByXnnpack("fully_connected_nc",
                           [&](xnn_operator_t* op) { return createOperator(c, op); }));
  F32Layer layer;
  layer.geometry.batch = c.layer.rows;
  layer.geometry.groupInputChannels = layer.product.channels = c.layer.inputChannels;
  layer.geometry.groupOutputChannels = layer.product.columns = c.channels.count;
  layer.product.outputStride = c.layer.outputChannels;
  layer.product.lowest = c.floats.lowest;
  layer.product.highest = c.floats.highest;
  layer.source = c.source;
  layer.destination = c.destination;
  layer.outputOffset = c.channels.first;
  return makeF32LayerKernel(layer, c.weights->bytesOf(c.place));
}

bool hasXnnpackTypes(PlanBuilder* builder, const FullyConnected& layer) {
  const graph::Operand& filter = builder->operand(layer.filter);
  const bool isPerOutput =
      filter.type != OperandType::kTensorQuant8SymmPerChannel || filter.perChannel.channelDim == 0;
  return isPerOutput && typesFit(builder, layer.input, layer.filter, layer.bias, layer.output);
}

Convolution overPixels(const FullyConnected& layer) {
  Convolution g;
  g.input = layer.input;
  g.filter = layer.filter;
  g.output = layer.output;
  g.bias = layer.bias;
  g.activation = layer.activation;
  g.batch = layer.rows;
  g.groupInputChannels = layer.inputChannels;
  g.groupOutputChannels = layer.outputChannels;
  return g;
}

}  // namespace

Result<bool> addFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  if (layer.blockScales != UINT32_MAX) return addBlockFullyConnected(builder, layer);
  HEARTH_ASSIGN(const bool isHalf, addF16wLayer(builder, overPixels(layer), "FULLY_CONNECTED"));
  if (isHalf) return true;
  if (builder->operand(layer.input).type == OperandType::kTensorFloat16)
    return builder->decline(kHalf);
  if (builder->operand(layer.input).type == OperandType::kTensorQuant16Symm)
    return addQs16Layer(builder, overPixels(layer), "FULLY_CONNECTED");
  if (!hasXnnpackTypes(builder, layer)) return addHybridFullyConnected(builder, layer);
  const graph::Operand& input = builder->operand(layer.input);
  const graph::Operand& filter = builder->operand(layer.filter);
  const graph::Operand& output = builder->operand(layer.output);
  if (!LayerScales::areLow(input, filter, output)) return builder->decline(kHighScales);
  if (!activationFits(layer.activation, output)) return builder->decline(kOneValue);
  HEARTH_ASSIGN(const bool isOnAvx2, addAvx2Layer(builder, overPixels(layer), "FULLY_CONNECTED"));
  if (isOnAvx2) return true;
  const ConvertedConstantRef converted = builder->constants().converted(layer.filter);
  const size_t channelBytes = layer.inputChannels * graph::elementSize(filter.type);
  // A converted constant is converted as a whole, so it is one part.
  const std::vector<ChannelRange> parts =
      channelParts(layer.outputChannels, converted == nullptr ? channelBytes : 0);
  // Only packing the last part may read past the constant's end.
  const WeightPlace last = {builder->currentOperation(), static_cast<uint32_t>(parts.size() - 1)};
  const uint8_t* const kernel = builder->constants().weightData(layer.filter, last);
  const uint8_t* bias = nullptr;
  if (layer.bias != UINT32_MAX) {
    HEARTH_ASSIGN(bias, builder->constants().biasData(layer.bias, last));
  }
  const LayerScales scales = LayerScales::of(input, filter, output);
  const ValueId source = builder->read(layer.input);
  const ValueId destination = builder->write(layer.output);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const ChannelRange channels = parts[part];
    Creation c;
    c.layer = layer;
    c.channels = channels;
    c.type = input.type;
    c.isPerChannel = filter.type == OperandType::kTensorQuant8SymmPerChannel;
    c.place = {builder->currentOperation(), part};
    c.convertedKernel = converted;
    if (kernel != nullptr) c.kernel = kernel + channels.first * channelBytes;
    // The bias is float32 or int32.
    if (bias != nullptr) c.bias = bias + channels.first * sizeof(int32_t);
    const uint32_t operands[] = {layer.input, layer.filter, layer.bias, layer.output};
    const uint64_t parameters[] = {layer.inputChannels, channels.count, channels.first};
    c.packed = builder->packingSource(operands, parameters);
    if (c.isPerChannel) c.kernelScales = scales.from(channels.first, layer.outputChannels);
    static_cast<LayerArithmetic&>(c) =
        LayerArithmetic::of(input, filter, output, scales, layer.activation);
    c.weights = builder->weights();
    c.source = source;
    c.destination = destination;
    // With fewer channels than a panel has, XNNPACK packs in another layout.
    const bool hasOwn = c.type == OperandType::kTensorFloat32 && hasF32Gemm() &&
                        channels.count >= f32Tile().columns;
    Node& node = builder->add(hasOwn ? "own" : "xnnpack", {source}, {destination});
    releaseAfterPacking(builder, &node, layer.filter, parts, part, channelBytes);
    if (!node.packedSources.empty()) c.released = node.packedSources.back();
    setKernels(&node, std::move(c), makeKernel, hasOwn ? makeOwnKernel : nullptr);
  }
  return true;
}

}  // namespace hearth::cpu
