// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/hybrid_convolution.h"

#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/convolution.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/hybrid_depthwise.h"
#include "drivers/cpu/lowering/hybrid_weights.h"
#include "drivers/cpu/lowering/packing_parts.h"
#include "drivers/cpu/lowering/preferred_kernel.h"
#include "drivers/cpu/lowering/quantized_rows.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

struct Creation : LayerPacking {
  Convolution geometry;
  bool isInt4 = false;
  std::shared_ptr<const float> kernelScales;
  const uint8_t* kernel = nullptr;
  const float* bias = nullptr;
  std::span<const uint8_t> released;  // what packing may release of `kernel`
  ops::ActivationRange floats{};
  QuantizedRows source;
  ValueId destination = 0;
  bool guardOneRowTail = false;
};

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const Convolution& g = c.geometry;
  const auto createOf = [&](ChannelRange channels, const void* kernel, xnn_operator_t* created) {
    return xnn_create_convolution2d_nhwc_qd8_f32_qc8w(
        g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
        g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
        channels.count, g.groups * g.groupInputChannels, g.groups * g.groupOutputChannels,
        c.kernelScales.get() + channels.first, static_cast<const int8_t*>(kernel),
        c.bias == nullptr ? nullptr : c.bias + channels.first, c.floats.lowest, c.floats.highest, 0,
        nullptr, c.weights->provider(), created);
  };
  const auto create = [&](const void* kernel) {
    return createOf({0, g.groupOutputChannels}, kernel, op);
  };
  if (c.isInt4) {
    const size_t count =
        g.groups * g.groupOutputChannels * g.kernelHeight * g.kernelWidth * g.groupInputChannels;
    return c.weights->createConverted(
        c.place, "CONV_2D", c.packed.get(), [&] { return widenInt4(c.kernel, count); }, create);
  }
  const auto make = [&] {
    return create(c.kernel);
  };
  if (g.groups != 1) return c.weights->create(c.place, "CONV_2D", c.packed.get(), make);
  const size_t channelBytes = g.kernelHeight * g.kernelWidth * g.groupInputChannels;
  return createInParts(
      c, "CONV_2D", g.groupOutputChannels, channelBytes, c.released,
      [&](ChannelRange channels, xnn_operator_t* part) {
        return createOf(channels, c.kernel + channels.first * channelBytes, part);
      },
      make);
}

Result<std::unique_ptr<Kernel>> makeXnnpackKernel(std::shared_ptr<const Creation> shared) {
  xnn_operator_t op = nullptr;
  const xnn_status status = createOperator(*shared, &op);
  const Convolution& g = shared->geometry;
  XnnCalls calls;
  calls.reshape = [shared](xnn_operator_t o, size_t* workspace, size_t* alignment,
                           pthreadpool_t pool) {
    const Convolution& g = shared->geometry;
    size_t height = 0;
    size_t width = 0;
    const xnn_status reshaped = xnn_reshape_convolution2d_nhwc_qd8_f32_qc8w(
        o, g.batch, g.inputHeight, g.inputWidth, workspace, alignment, &height, &width, pool);
    return statusOfReshape(reshaped, height, width, g.outputHeight, g.outputWidth);
  };
  calls.setup = [shared](xnn_operator_t o, void* workspace, std::span<void* const> at) {
    return xnn_setup_convolution2d_nhwc_qd8_f32_qc8w(
        o, workspace, static_cast<const int8_t*>(at[shared->source.numbers]),
        static_cast<float*>(at[shared->destination]),
        static_cast<const struct xnn_quantization_params*>(at[shared->source.parameters]));
  };
  calls.hint.columns = g.groupOutputChannels;
  calls.hint.packedBytesPerColumn =
      shared->weights->bytesOf(shared->place).size() / (g.groups * g.groupOutputChannels);
  calls.hint.guardOneRowTail = shared->guardOneRowTail;
  return makeXnnKernel("convolution2d_nhwc_qd8_f32_qc8w", status, op, std::move(calls));
}

// Whether XNNPACK packs the weights like those of a product whose rows are gathered windows. With
// fewer channels than a panel has, it packs in another layout.
bool isHybridLayer(const Convolution& g) {
  const uint64_t inputs = uint64_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  return hasQd8Gemm() && g.groups == 1 && g.groupOutputChannels >= kQd8Columns &&
         g.groupInputChannels % kQd8Group == 0 && inputs <= kMostQd8Inputs;
}

Result<std::unique_ptr<Kernel>> makeOwnKernel(const Creation& c) {
  const Convolution& g = c.geometry;
  HEARTH_TRY(packByXnnpack("convolution2d_nhwc_qd8_f32_qc8w",
                           [&](xnn_operator_t* op) { return createOperator(c, op); }));
  Qd8Gemm product;
  product.inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  product.columns = g.groupOutputChannels;
  product.lowest = c.floats.lowest;
  product.highest = c.floats.highest;
  product.outputStride = g.groupOutputChannels;
  HEARTH_ASSIGN(product.packed,
                packedBytes(c.weights->bytesOf(c.place), product.panels() * product.panelBytes()));
  return makeQd8LayerKernel({g.outputHeight * g.outputWidth, c.source, c.destination, 0, g},
                            product);
}

}  // namespace

Result<bool> addHybridConvolution(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  if (g.isDepthwise) return addHybridDepthwise(builder, g);
  const std::optional<HybridWeights> weights = hybridWeights(
      builder, g.input, g.filter, g.bias, g.output, size_t{g.groups} * g.groupOutputChannels);
  if (!weights) return builder->decline(kMixedTypes);
  // Padding may move into the convolution: zeros do not change the range to which an image is
  // quantised.
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  Creation c;
  c.geometry = g;
  c.isInt4 = weights->isInt4;
  c.kernelScales = scalesFrom(*weights->operand, size_t{g.groups} * g.groupOutputChannels);
  c.place = {builder->currentOperation(), 0};
  c.kernel = builder->constants().weightData(g.filter, c.place);
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().biasData(g.bias, c.place));
    c.bias = reinterpret_cast<const float*>(bias);
  }
  c.packed = convolutionPacking(builder, g);
  c.released = builder->constants().releasable(g.filter);
  c.floats = ops::activationRange(g.activation);
  c.weights = builder->weights();
  HEARTH_ASSIGN(const KernelTraits traits, builder->traits());
  c.guardOneRowTail = traits.guardInt8OneRowTail && mayEndInOneRow(g, true);
  c.source = quantizeRows(builder, g.input, g.batch,
                          g.inputHeight * g.inputWidth * g.groups * g.groupInputChannels);
  c.destination = builder->write(g.output);
  if (c.guardOneRowTail)
    builder->reserveWriteSlack(c.destination, g.groups * g.groupOutputChannels * sizeof(float));

  const bool hasOwn = isHybridLayer(g);
  Node& node = builder->add(hasOwn ? "own" : "xnnpack", {c.source.numbers, c.source.parameters},
                            {c.destination});
  builder->constants().releaseAfterPacking(&node, g.filter);
  setKernels(&node, std::move(c), makeXnnpackKernel, hasOwn ? makeOwnKernel : nullptr);
  return true;
}

}  // namespace hearth::cpu
