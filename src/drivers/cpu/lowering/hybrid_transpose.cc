// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/hybrid_transpose.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/hybrid_weights.h"
#include "drivers/cpu/lowering/quantized_rows.h"

namespace hearth::cpu {
namespace {

struct Creation {
  ops::TransposeConv2dParameters parameters;
  std::shared_ptr<const float> kernelScales;
  const uint8_t* kernel = nullptr;
  const float* bias = nullptr;
  ops::ActivationRange floats{};
  QuantizedRows source;
  ValueId destination = 0;
};

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const ops::Window2d& w = c.parameters.window;
  const ops::Padding2d& p = w.padding;
  const size_t in = c.parameters.input.channels;
  const size_t out = c.parameters.output.channels;
  return xnn_create_deconvolution2d_nhwc_qd8_f32_qc8w(
      p.top, p.right, p.bottom, p.left, w.filterHeight, w.filterWidth, w.strideHeight,
      w.strideWidth, 1, 1, 1, in, out, in, out, c.kernelScales.get(),
      reinterpret_cast<const int8_t*>(c.kernel), c.bias, c.floats.lowest, c.floats.highest, 0,
      nullptr, nullptr, op);
}

// Whether the last tile of rows may have one row. XNNPACK computes an image at once, or where
// strides are no longer than the filter the columns of each phase of a row.
bool mayEndInOneRow(const ops::TransposeConv2dParameters& p) {
  const ops::Window2d& w = p.window;
  const bool isInPhases = std::max(w.strideHeight, w.strideWidth) > 1 &&
                          w.filterHeight >= w.strideHeight && w.filterWidth >= w.strideWidth;
  if (!isInPhases) return endsInOneRow(size_t{p.output.height} * p.output.width);
  bool may = false;
  const auto stride = static_cast<size_t>(w.strideWidth);
  for (size_t phase = 0; phase < std::min<size_t>(stride, p.output.width); ++phase)
    may |= endsInOneRow((p.output.width - phase + stride - 1) / stride);
  return may;
}

}  // namespace

Result<bool> addHybridTranspose(PlanBuilder* builder,
                                const ops::TransposeConv2dParameters& parameters) {
  const graph::Operation& operation = *builder->context().operation;
  const uint32_t bias = builder->context().hasInput(2) ? operation.inputs[2] : UINT32_MAX;
  const size_t outputs = parameters.output.channels;
  const std::optional<HybridWeights> weights = hybridWeights(
      builder, operation.inputs[0], operation.inputs[1], bias, operation.outputs[0], outputs);
  if (!weights || weights->isInt4) return false;
  HEARTH_ASSIGN(const KernelTraits traits, builder->traits());
  if ((traits.guardInt8OneRowTail || traits.avoidInt8OneRowTail) && mayEndInOneRow(parameters))
    return builder->decline(kWrongOnThisCpu);
  Creation c;
  c.parameters = parameters;
  c.kernelScales = scalesFrom(*weights->operand, outputs);
  HEARTH_ASSIGN(c.kernel, builder->constants().rawData(operation.inputs[1]));
  if (bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const data, builder->constants().rawData(bias));
    c.bias = reinterpret_cast<const float*>(data);
  }
  c.floats = ops::activationRange(parameters.activation);
  const ops::ImageShape& image = parameters.input;
  c.source = quantizeRows(builder, operation.inputs[0], image.batches,
                          size_t{image.height} * image.width * image.channels);
  c.destination = builder->write(operation.outputs[0]);
  Node& node = builder->add("xnnpack", {c.source.numbers, c.source.parameters}, {c.destination});
  node.create = [shared = std::make_shared<const Creation>(
                     std::move(c))]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = createOperator(*shared, &op);
    XnnCalls calls;
    calls.reshape = [shared](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      const ops::TransposeConv2dParameters& p = shared->parameters;
      size_t height = 0;
      size_t width = 0;
      const xnn_status reshaped = xnn_reshape_deconvolution2d_nhwc_qd8_f32_qc8w(
          o, p.input.batches, p.input.height, p.input.width, p.adjustmentHeight, p.adjustmentWidth,
          &height, &width, pool);
      return statusOfReshape(reshaped, height, width, p.output.height, p.output.width);
    };
    calls.setup = [shared](xnn_operator_t o, void*, std::span<void* const> at) {
      return xnn_setup_deconvolution2d_nhwc_qd8_f32_qc8w(
          o, static_cast<const int8_t*>(at[shared->source.numbers]),
          static_cast<float*>(at[shared->destination]),
          static_cast<const struct xnn_quantization_params*>(at[shared->source.parameters]));
    };
    return makeXnnKernel("deconvolution2d_nhwc_qd8_f32_qc8w", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
