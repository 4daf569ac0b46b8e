// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/hybrid_depthwise.h"

#include <memory>
#include <vector>

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/f32_depthwise.h"
#include "drivers/cpu/lowering/quantized_rows.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

bool isConstantFloat(const graph::Operand& operand) {
  return operand.isConstant() && operand.type == OperandType::kTensorFloat32;
}

// Whether the filter has 8-bit numbers, and one scale or one for each channel.
bool hasByteWeights(const graph::Operand& filter) {
  if (!filter.isConstant()) return false;
  switch (filter.type) {
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return true;
    case OperandType::kTensorQuant8SymmPerChannel:
      return filter.perChannel.channelDim == 3;
    default:
      return false;
  }
}

// The weights as real numbers.
std::vector<float> realWeights(const graph::Operand& filter, const uint8_t* data, size_t taps,
                               size_t channels) {
  const bool isPerChannel = filter.type == OperandType::kTensorQuant8SymmPerChannel;
  const auto* const steps = reinterpret_cast<const int8_t*>(data);
  std::vector<float> weights(taps * channels);
  for (size_t i = 0; i < weights.size(); ++i) {
    const float scale = isPerChannel ? filter.perChannel.scales[i % channels] : filter.scale;
    weights[i] = scale * static_cast<float>(steps[i] - filter.zeroPoint);
  }
  return weights;
}

// Adds a node that makes real numbers of quantised rows.
ValueId addRealRows(PlanBuilder* builder, const QuantizedRows& rows, size_t count, size_t rowSize) {
  const ValueId real = builder->temporary(count * rowSize * sizeof(float));
  builder->add("own", {rows.numbers, rows.parameters}, {real}).create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const auto* const all = run.at<const xnn_quantization_params>(rows.parameters);
      for (size_t row = 0; row < count; ++row) {
        const int8_t* const source = run.at<const int8_t>(rows.numbers) + row * rowSize;
        float* const target = run.at<float>(real) + row * rowSize;
        const int32_t zero = all[row].zero_point;
        const float scale = all[row].scale;
        threads::forRanges(run.pool, rowSize, threads::grainOf(sizeof(float)),
                           [&](uint64_t begin, uint64_t end) {
                             base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
                               for (uint64_t i = begin; i < end; ++i)
                                 target[i] = static_cast<float>(source[i] - zero) * scale;
                             });
                           });
      }
      return {};
    });
  };
  return real;
}

}  // namespace

Result<bool> addHybridDepthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  const graph::Operand& filter = builder->operand(g.filter);
  if (builder->operand(g.input).type != OperandType::kTensorFloat32 ||
      builder->operand(g.output).type != OperandType::kTensorFloat32 || !hasByteWeights(filter) ||
      (g.bias != UINT32_MAX && !isConstantFloat(builder->operand(g.bias))) || !hasF32Depthwise(g))
    return false;
  // Zeros do not change the range to which an image is quantised.
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  F32Depthwise layer;
  layer.geometry = g;
  HEARTH_ASSIGN(const uint8_t* const weights, builder->constants().rawData(g.filter));
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().rawData(g.bias));
    layer.bias = reinterpret_cast<const float*>(bias);
  }
  const ops::ActivationRange range = ops::activationRange(g.activation);
  layer.lowest = range.lowest;
  layer.highest = range.highest;
  const size_t rowSize = g.inputHeight * g.inputWidth * g.groups;
  const QuantizedRows rows = quantizeRows(builder, g.input, g.batch, rowSize);
  layer.source = addRealRows(builder, rows, g.batch, rowSize);
  layer.destination = builder->write(g.output);
  builder->add("own", {layer.source}, {layer.destination}).create =
      [layer, weights, &filter]() -> Result<std::unique_ptr<Kernel>> {
    F32Depthwise made = layer;
    const Convolution& window = layer.geometry;
    const size_t taps = size_t{window.kernelHeight} * window.kernelWidth;
    made.ownWeights = std::make_shared<const std::vector<float>>(
        realWeights(filter, weights, taps, window.groups));
    made.weights = made.ownWeights->data();
    return makeF32DepthwiseKernel(made);
  };
  return true;
}

}  // namespace hearth::cpu
