// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/transpose_convolution.h"

#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/kernels/xnn_setup.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/f32_narrow_transpose.h"
#include "drivers/cpu/lowering/f32_transpose_layer.h"
#include "drivers/cpu/lowering/hybrid_transpose.h"
#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/lowering/transpose_layer.h"
#include "ops/quantization.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

struct Creation {
  ops::TransposeConv2dParameters parameters;
  OperandType type = OperandType::kTensorFloat32;
  const void* kernel = nullptr;
  const void* bias = nullptr;
  std::shared_ptr<const float> kernelScales;  // int8: by output channel, readable past the end
  graph::Operand input, filter, output;
  LayerScales scales;
  ops::ActivationRange floats{};
  ops::QuantizedRange steps{};
  ValueId source = 0, destination = 0;
};

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const ops::Window2d& w = c.parameters.window;
  const ops::Padding2d& p = w.padding;
  const size_t in = c.parameters.input.channels;
  const size_t out = c.parameters.output.channels;
  switch (c.type) {
    case OperandType::kTensorFloat32:
      return xnn_create_deconvolution2d_nhwc_f32(
          p.top, p.right, p.bottom, p.left, w.filterHeight, w.filterWidth, w.strideHeight,
          w.strideWidth, 1, 1, 1, in, out, in, out, static_cast<const float*>(c.kernel),
          static_cast<const float*>(c.bias), c.floats.lowest, c.floats.highest, 0, nullptr, nullptr,
          op);
    case OperandType::kTensorQuant8Asymm:
      return xnn_create_deconvolution2d_nhwc_qu8(
          p.top, p.right, p.bottom, p.left, w.filterHeight, w.filterWidth, w.strideHeight,
          w.strideWidth, 1, 1, 1, in, out, in, out, static_cast<uint8_t>(c.input.zeroPoint),
          c.scales.input, static_cast<uint8_t>(c.filter.zeroPoint), c.scales.filter,
          static_cast<const uint8_t*>(c.kernel), static_cast<const int32_t*>(c.bias),
          static_cast<uint8_t>(c.output.zeroPoint), c.scales.output,
          static_cast<uint8_t>(c.steps.lowest), static_cast<uint8_t>(c.steps.highest), 0, nullptr,
          nullptr, op);
    default:
      return xnn_create_deconvolution2d_nhwc_qs8_qc8w(
          p.top, p.right, p.bottom, p.left, w.filterHeight, w.filterWidth, w.strideHeight,
          w.strideWidth, 1, 1, 1, in, out, in, out, static_cast<int8_t>(c.input.zeroPoint),
          c.scales.input, c.kernelScales.get(), static_cast<const int8_t*>(c.kernel),
          static_cast<const int32_t*>(c.bias), static_cast<int8_t>(c.output.zeroPoint),
          c.scales.output, static_cast<int8_t>(c.steps.lowest),
          static_cast<int8_t>(c.steps.highest), 0, nullptr, nullptr, op);
  }
}

xnn_status reshapeOperator(const Creation& c, xnn_operator_t op, pthreadpool_t pool) {
  const ops::TransposeConv2dParameters& p = c.parameters;
  size_t height = 0;
  size_t width = 0;
  const auto reshape = c.type == OperandType::kTensorFloat32 ? xnn_reshape_deconvolution2d_nhwc_f32
                       : c.type == OperandType::kTensorQuant8Asymm
                           ? xnn_reshape_deconvolution2d_nhwc_qu8
                           : xnn_reshape_deconvolution2d_nhwc_qs8_qc8w;
  const xnn_status status = reshape(op, p.input.batches, p.input.height, p.input.width,
                                    p.adjustmentHeight, p.adjustmentWidth, &height, &width, pool);
  if (status == xnn_status_success && (height != p.output.height || width != p.output.width))
    return xnn_status_unsupported_parameter;
  return status;
}

xnn_status setupOperator(const Creation& c, xnn_operator_t op, std::span<void* const> at) {
  return setupTyped(c.type, op, at[c.source], at[c.destination], xnn_setup_deconvolution2d_nhwc_f32,
                    xnn_setup_deconvolution2d_nhwc_qu8, xnn_setup_deconvolution2d_nhwc_qs8_qc8w);
}

bool typesFit(const Creation& c) {
  if (c.input.type != c.output.type) return false;
  switch (c.type) {
    case OperandType::kTensorFloat32:
    case OperandType::kTensorQuant8Asymm:
      return c.filter.type == c.type;
    case OperandType::kTensorQuant8AsymmSigned:
      return (c.filter.type == c.type && c.filter.zeroPoint == 0) ||
             c.filter.type == OperandType::kTensorQuant8SymmPerChannel;
    default:
      return false;
  }
}

}  // namespace

Result<bool> lowerTransposeConv2d(PlanBuilder* builder) {
  const graph::Operation& operation = *builder->context().operation;
  Creation c;
  HEARTH_ASSIGN(c.parameters, ops::parseTransposeConv2d(builder->context()));
  c.input = builder->operand(operation.inputs[0]);
  c.filter = builder->operand(operation.inputs[1]);
  c.output = builder->operand(operation.outputs[0]);
  c.type = c.input.type;
  const bool hasBias = builder->context().hasInput(2);
  if (c.parameters.isNchw) return builder->decline(kNchw);
  // XNNPACK subtracts from the number of outputs the position of each phase's first output, without
  // a sign: with fewer outputs than the stride the difference wraps, and it writes out of bounds.
  const ops::Window2d& window = c.parameters.window;
  const bool isForXnnpack =
      c.parameters.output.height >= static_cast<uint32_t>(window.strideHeight) &&
      c.parameters.output.width >= static_cast<uint32_t>(window.strideWidth);
  const bool fits = typesFit(c);
  if (!fits) builder->decline(kMixedTypes);
  if (isForXnnpack) {
    HEARTH_ASSIGN(const bool isHybrid, addHybridTranspose(builder, c.parameters));
    if (isHybrid) return true;
  }
  if (!fits) return false;
  if (!builder->constants().isWeight(operation.inputs[1]) ||
      (hasBias && !builder->constants().isWeight(operation.inputs[2])))
    return builder->decline(kComputedWeights);
  if (!LayerScales::areLow(c.input, c.filter, c.output)) return builder->decline(kHighScales);
  if (!activationFits(c.parameters.activation, c.output)) return builder->decline(kOneValue);
  c.scales = LayerScales::of(c.input, c.filter, c.output);
  HEARTH_ASSIGN(const bool isOwn, addTransposeLayer(builder, c.parameters));
  if (isOwn) return true;
  if (!isForXnnpack) return builder->decline("it has fewer outputs than its stride");
  HEARTH_ASSIGN(const bool isNarrow, addF32NarrowTranspose(builder, c.parameters));
  if (isNarrow) return true;
  HEARTH_ASSIGN(const bool isOwnFloat, addF32TransposeLayer(builder, c.parameters));
  if (isOwnFloat) return true;
  if (c.type == OperandType::kTensorQuant8AsymmSigned) {
    HEARTH_ASSIGN(const KernelTraits traits, builder->traits());
    if (traits.guardInt8OneRowTail || traits.avoidInt8OneRowTail)
      return builder->decline(kWrongOnThisCpu);
    c.kernelScales = c.scales.from(0, c.parameters.output.channels);
  }
  HEARTH_ASSIGN(c.kernel, builder->constants().rawData(operation.inputs[1]));
  if (hasBias) {
    HEARTH_ASSIGN(c.bias, builder->constants().rawData(operation.inputs[2]));
  }
  c.floats = ops::activationRange(c.parameters.activation);
  c.steps = ops::quantizedActivationRange(c.parameters.activation, c.output);
  c.source = builder->read(operation.inputs[0]);
  c.destination = builder->write(operation.outputs[0]);
  Node& node = builder->add("xnnpack", {c.source}, {c.destination});
  node.create = [shared = std::make_shared<const Creation>(
                     std::move(c))]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = createOperator(*shared, &op);
    XnnCalls calls;
    calls.reshape = [shared](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return reshapeOperator(*shared, o, pool);
    };
    calls.setup = [shared](xnn_operator_t o, void*, std::span<void* const> at) {
      return setupOperator(*shared, o, at);
    };
    return makeXnnKernel("deconvolution2d_nhwc", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
