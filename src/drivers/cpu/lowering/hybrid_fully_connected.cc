// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/hybrid_fully_connected.h"

#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/kernels/qd8_panels_layer.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/avx2_layer.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/hybrid_weights.h"
#include "drivers/cpu/lowering/int4_fully_connected.h"
#include "drivers/cpu/lowering/packing_parts.h"
#include "drivers/cpu/lowering/preferred_kernel.h"
#include "drivers/cpu/lowering/quantized_rows.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

struct Creation : HybridPart {
  bool isInt4 = false;
  const uint8_t* kernel = nullptr;  // of the first channel in `channels`
  std::shared_ptr<const float> kernelScales;
  std::span<const uint8_t> released;  // what packing may release of `kernel`
};

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const size_t in = c.layer.inputChannels;
  const size_t out = c.channels.count;
  const auto createOf = [&](ChannelRange channels, const void* kernel, xnn_operator_t* created) {
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(
        in, channels.count, in, c.layer.outputChannels, c.kernelScales.get() + channels.first,
        static_cast<const int8_t*>(kernel), c.bias == nullptr ? nullptr : c.bias + channels.first,
        c.floats.lowest, c.floats.highest, 0, nullptr, c.weights->provider(), created);
  };
  const auto create = [&](const void* kernel) {
    return createOf({0, out}, kernel, op);
  };
  if (c.isInt4) {
    return c.weights->createConverted(
        c.place, "FULLY_CONNECTED", c.packed.get(), [&] { return widenInt4(c.kernel, in * out); },
        create);
  }
  return createInParts(
      c, "FULLY_CONNECTED", out, in, c.released,
      [&](ChannelRange channels, xnn_operator_t* part) {
        return createOf(channels, c.kernel + channels.first * in, part);
      },
      [&] { return create(c.kernel); });
}

Result<std::unique_ptr<Kernel>> makeKernel(std::shared_ptr<const Creation> creation) {
  const Creation& c = *creation;
  xnn_operator_t op = nullptr;
  const xnn_status status = createOperator(c, &op);
  XnnCalls calls;
  calls.reshape = [creation](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
    return xnn_reshape_fully_connected_nc_qd8_f32_qc8w(o, creation->layer.rows, pool);
  };
  calls.setup = [creation](xnn_operator_t o, void*, std::span<void* const> at) {
    return xnn_setup_fully_connected_nc_qd8_f32_qc8w(
        o, static_cast<const int8_t*>(at[creation->source.numbers]),
        static_cast<float*>(at[creation->destination]) + creation->channels.first,
        static_cast<const struct xnn_quantization_params*>(at[creation->source.parameters]));
  };
  calls.hint = hintOf(c, c.channels.count);
  return makeXnnKernel("fully_connected_nc_qd8_f32_qc8w", status, op, std::move(calls));
}

// A product of ours over the weights that XNNPACK packs.
template <typename Product>
Result<Product> productOverPanels(const Creation& c) {
  HEARTH_TRY(packByXnnpack("fully_connected_nc_qd8_f32_qc8w",
                           [&](xnn_operator_t* op) { return createOperator(c, op); }));
  Product product;
  product.inputs = c.layer.inputChannels;
  product.columns = c.channels.count;
  product.lowest = c.floats.lowest;
  product.highest = c.floats.highest;
  product.outputStride = c.layer.outputChannels;
  HEARTH_ASSIGN(product.packed,
                packedBytes(c.weights->bytesOf(c.place), product.panels() * product.panelBytes()));
  return product;
}

// Makes the kernel of the same layer on a product of ours.
Result<std::unique_ptr<Kernel>> makeOwnKernel(const Creation& c) {
  HEARTH_ASSIGN(const Qd8Gemm product, productOverPanels<Qd8Gemm>(c));
  return makeQd8LayerKernel({c.layer.rows, c.source, c.destination, c.channels.first}, product);
}

// The same on AVX2.
Result<std::unique_ptr<Kernel>> makePanelsKernel(const Creation& c) {
  HEARTH_ASSIGN(const Avx2Qd8Panels product, productOverPanels<Avx2Qd8Panels>(c));
  return makeQd8PanelsLayerKernel({c.layer.rows, c.source, c.destination, c.channels.first},
                                  product);
}

// Makes the kernel on the product for AVX2, over weights of our own packing.
Result<std::unique_ptr<Kernel>> makeAvx2Kernel(std::shared_ptr<const Creation> creation) {
  const Creation& c = *creation;
  Avx2Weights weights;
  weights.values = c.kernel;
  weights.inputs = c.layer.inputChannels;
  weights.columns = c.channels.count;
  weights.factors = c.kernelScales.get();
  weights.biases = c.bias;
  std::vector<int32_t> negativeSums;
  HEARTH_ASSIGN(Avx2Panels panels,
                packAvx2(c, "FULLY_CONNECTED", weights, c.layer.rows, [&](const Avx2Weights& read) {
                  for (size_t column = 0; column < read.columns; ++column)
                    negativeSums.push_back(static_cast<int32_t>(0 - read.sumOf(column)));
                  return negativeSums.data();
                }));
  Avx2HybridGemm product;
  product.weights = std::move(panels);
  product.lowest = c.floats.lowest;
  product.highest = c.floats.highest;
  product.outputStride = c.layer.outputChannels;
  return makeQd8LayerKernel({c.layer.rows, c.source, c.destination, c.channels.first}, product);
}

// Whether Avx2Gemm is faster than XNNPACK's product: with AVX-VNNI, unless XNNPACK has AVX-512
// VNNI.
bool isOnAvxVnni(const FullyConnected& layer, bool isInt4) {
  return hasAvxVnni() && !hasAvx512Vnni() && !isInt4 && layer.inputChannels <= kMostQd8Inputs;
}

// Whether a product of ours over XNNPACK's panels for AVX2 is.
bool isOnPanels(const FullyConnected& layer, size_t columns) {
  return !hasAvxVnni() && layer.inputChannels <= kMostQd8Inputs &&
         isQd8PanelsLayerFaster(layer.rows, layer.inputChannels, columns) && hasAvx2Qd8Panels();
}

}  // namespace

Result<bool> addHybridFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  const std::optional<HybridWeights> weights = hybridWeights(
      builder, layer.input, layer.filter, layer.bias, layer.output, layer.outputChannels);
  if (!weights) return builder->decline(kMixedTypes);
  if (weights->isInt4) {
    HEARTH_ASSIGN(const bool isAdded,
                  addChannelInt4FullyConnected(builder, layer, *weights->operand));
    if (isAdded) return true;
  }
  // Two 4-bit numbers share a byte, so channels begin at whole bytes only with an even number of
  // inputs.
  const bool isDivisible = !weights->isInt4 || layer.inputChannels % 2 == 0;
  const size_t channelBytes = weights->isInt4 ? layer.inputChannels / 2 : layer.inputChannels;
  const std::vector<ChannelRange> parts =
      channelParts(layer.outputChannels, isDivisible ? channelBytes : 0);
  // Only packing the last part may read past the constant's end.
  const WeightPlace last = {builder->currentOperation(), static_cast<uint32_t>(parts.size() - 1)};
  const uint8_t* const kernel = builder->constants().weightData(layer.filter, last);
  const float* bias = nullptr;
  if (layer.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const data, builder->constants().biasData(layer.bias, last));
    bias = reinterpret_cast<const float*>(data);
  }
  const QuantizedRows source = quantizeRows(builder, layer.input, layer.rows, layer.inputChannels);
  const ValueId destination = builder->write(layer.output);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const ChannelRange channels = parts[part];
    Creation c;
    c.layer = layer;
    c.channels = channels;
    c.isInt4 = weights->isInt4;
    c.kernelScales = scalesFrom(*weights->operand, layer.outputChannels, channels.first);
    c.place = {builder->currentOperation(), part};
    c.kernel = kernel + channels.first * channelBytes;
    if (bias != nullptr) c.bias = bias + channels.first;
    const uint32_t operands[] = {layer.filter, layer.bias};
    const bool isOnDots = isOnAvxVnni(layer, c.isInt4);
    // The last number tells the packings of kernels apart.
    const uint64_t parameters[] = {layer.inputChannels, channels.count, channels.first, isOnDots};
    c.packed = builder->packingSource(operands, parameters);
    c.floats = ops::activationRange(layer.activation);
    c.weights = builder->weights();
    c.source = source;
    c.destination = destination;
    // With fewer channels than a panel has, XNNPACK packs in another layout.
    const bool hasOwn = hasQd8Gemm() && channels.count >= kQd8Columns;
    const bool isPanels = !hasOwn && isOnPanels(layer, channels.count);
    Node& node = builder->add(hasOwn || isPanels || isOnDots ? "own" : "xnnpack",
                              {source.numbers, source.parameters}, {destination});
    releaseAfterPacking(builder, &node, layer.filter, parts, part, channelBytes);
    if (!node.packedSources.empty()) c.released = node.packedSources.back();
    setKernels(&node, std::move(c), isOnDots ? makeAvx2Kernel : makeKernel,
               hasOwn     ? makeOwnKernel
               : isPanels ? makePanelsKernel
                          : nullptr);
  }
  return true;
}

}  // namespace hearth::cpu
