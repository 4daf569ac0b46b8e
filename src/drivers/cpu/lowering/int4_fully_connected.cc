// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/int4_fully_connected.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/quantized_rows.h"
#include "drivers/cpu/microkernels/portable/qb4w_gemm_in_place.h"
#include "drivers/cpu/microkernels/portable/qd8_f32_qb4w_gemm.h"
#include "ops/half.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

struct Creation : HybridPart {
  size_t blockSize = 0;
  bool areScalesHalf = false;
  bool isByChannel = false;
  std::shared_ptr<const float> channelScales;  // by channel: of `channels`
  // Data of the first channel in `channels`.
  const uint8_t* pairs = nullptr;
  const void* scales = nullptr;
};

bool typesFit(PlanBuilder* builder, const FullyConnected& layer) {
  const auto isConstantFloat = [&](uint32_t operand) {
    return builder->operand(operand).isConstant() &&
           builder->operand(operand).type == OperandType::kTensorFloat32;
  };
  const graph::Operand& filter = builder->operand(layer.filter);
  // The limits make columns begin at whole bytes and keep sums over a block within 32 bits.
  constexpr size_t kMostInputs = size_t{1} << 20;
  return builder->operand(layer.input).type == OperandType::kTensorFloat32 &&
         builder->operand(layer.output).type == OperandType::kTensorFloat32 &&
         filter.isConstant() && filter.type == OperandType::kTensorInt4 &&
         layer.inputChannels % 2 == 0 && layer.inputChannels <= kMostInputs &&
         (layer.bias == UINT32_MAX || isConstantFloat(layer.bias)) &&
         (isConstantFloat(layer.blockScales) ||
          (builder->operand(layer.blockScales).isConstant() &&
           builder->operand(layer.blockScales).type == OperandType::kTensorFloat16));
}

// Makes the kernel over weights that are packed for Qb4Gemm.
Result<std::unique_ptr<Kernel>> makePackedKernel(const Creation& c) {
  Qb4Gemm product;
  product.inputs = c.layer.inputChannels;
  product.columns = c.channels.count;
  product.blockSize = c.blockSize;
  product.areScalesHalf = c.areScalesHalf;
  product.areSumsWhole = c.isByChannel;
  product.lowest = c.floats.lowest;
  product.highest = c.floats.highest;
  product.outputStride = c.layer.outputChannels;
  HEARTH_ASSIGN(product.packed,
                c.weights->pack(c.place, "FULLY_CONNECTED", c.packed.get(),
                                product.panels() * product.panelBytes(), [&](uint8_t* bytes) {
                                  packInt4(product, c.pairs, c.scales, c.bias, bytes);
                                }));
  return makeQd8LayerKernel({c.layer.rows, c.source, c.destination, c.channels.first}, product);
}

void addPacked(PlanBuilder* builder, Creation c) {
  const FullyConnected& layer = c.layer;
  const size_t channelPairs = layer.inputChannels / 2;
  const size_t channelScales =
      layer.inputChannels / c.blockSize * (c.areScalesHalf ? sizeof(ops::Half) : sizeof(float));
  const std::vector<ChannelRange> parts = channelParts(layer.outputChannels, channelPairs);
  const WeightPlace last =
      WeightPlace::of(builder->currentOperation(), PackedLayout::kInt4Panels, parts.size() - 1);
  const uint8_t* const pairs = builder->constants().weightData(layer.filter, last);
  const uint8_t* const scales = builder->constants().weightData(layer.blockScales, last);
  const uint8_t* const bias =
      layer.bias == UINT32_MAX ? nullptr : builder->constants().weightData(layer.bias, last);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    c.channels = parts[part];
    const size_t first = c.channels.first;
    c.pairs = pairs + first * channelPairs;
    c.scales = scales + first * channelScales;
    if (bias != nullptr) c.bias = reinterpret_cast<const float*>(bias) + first;
    c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kInt4Panels, part);
    const uint32_t operands[] = {layer.filter, layer.blockScales, layer.bias};
    const uint64_t parameters[] = {layer.inputChannels, c.channels.count, first};
    c.packed = builder->packingSource(operands, parameters);
    Node& node = builder->add("own", {c.source.numbers, c.source.parameters}, {c.destination});
    releaseAfterPacking(*builder, &node, layer.filter, c.channels, channelPairs);
    releaseAfterPacking(*builder, &node, layer.blockScales, c.channels, channelScales);
    node.create = [creation = std::make_shared<const Creation>(c)] {
      return makePackedKernel(*creation);
    };
  }
}

// The same where the scales belong to the type of the filter.
Status addPackedByChannel(PlanBuilder* builder, const graph::Operand& filter, Creation c) {
  const FullyConnected& layer = c.layer;
  const size_t channelPairs = layer.inputChannels / 2;
  const std::vector<ChannelRange> parts = channelParts(layer.outputChannels, channelPairs);
  const WeightPlace last =
      WeightPlace::of(builder->currentOperation(), PackedLayout::kInt4Panels, parts.size() - 1);
  const uint8_t* const pairs = builder->constants().weightData(layer.filter, last);
  const uint8_t* bias = nullptr;
  if (layer.bias != UINT32_MAX) {
    HEARTH_ASSIGN(bias, builder->constants().biasData(layer.bias, last));
  }
  for (uint32_t part = 0; part < parts.size(); ++part) {
    c.channels = parts[part];
    const size_t first = c.channels.first;
    c.pairs = pairs + first * channelPairs;
    c.channelScales = scalesFrom(filter, layer.outputChannels, first);
    c.scales = c.channelScales.get();
    if (bias != nullptr) c.bias = reinterpret_cast<const float*>(bias) + first;
    c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kInt4Panels, part);
    const uint32_t operands[] = {layer.filter, layer.bias};
    // The last number tells these panels from those of 8-bit weights.
    const uint64_t parameters[] = {layer.inputChannels, c.channels.count, first, 4};
    c.packed = builder->packingSource(operands, parameters);
    Node& node = builder->add("own", {c.source.numbers, c.source.parameters}, {c.destination});
    releaseAfterPacking(builder, &node, layer.filter, parts, part, channelPairs);
    node.create = [creation = std::make_shared<const Creation>(c)] {
      return makePackedKernel(*creation);
    };
  }
  return {};
}

// Adds the bias and applies the activation, which the product in place does not do.
void finish(const Creation& c, const float* bias, size_t first, size_t last, float* output) {
  for (size_t row = 0; row < c.layer.rows; ++row) {
    float* values = output + row * c.layer.outputChannels;
    for (size_t i = first; i < last; ++i)
      values[i] = c.floats.apply(bias == nullptr ? values[i] : values[i] + bias[i]);
  }
}

Status computeInPlace(const Creation& c, const Int4Weights& matrix, const float* bias,
                      const KernelRun& run) {
  const Int4Rows given{run.at<const int8_t>(c.source.numbers),
                       run.at<const struct xnn_quantization_params>(c.source.parameters),
                       c.layer.rows};
  auto* output = run.at<float>(c.destination);
  constexpr size_t kStep = 16;
  const size_t steps = (matrix.columns + kStep - 1) / kStep;
  const uint64_t grain =
      std::max<uint64_t>(1, threads::grainOf(kStep * matrix.inputs / 2) / given.count);
  threads::forRanges(run.pool, steps, grain, [&](uint64_t begin, uint64_t end) {
    const size_t first = begin * kStep;
    const size_t last = std::min<size_t>(matrix.columns, end * kStep);
    int4Multiply(matrix, given, first, last, output);
    finish(c, bias, first, last, output);
  });
  return {};
}

void addInPlace(PlanBuilder* builder, Creation c) {
  c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kInt4Sums);
  const uint32_t operands[] = {c.layer.filter, c.layer.blockScales};
  const uint64_t parameters[] = {c.layer.inputChannels, c.layer.outputChannels};
  c.packed = builder->packingSource(operands, parameters);
  // Each run reads the constants: as values they are aligned and readable.
  const ValueId filter = builder->read(c.layer.filter);
  const ValueId factors = builder->read(c.layer.blockScales);
  std::vector<ValueId> inputs = {c.source.numbers, c.source.parameters, filter, factors};
  std::optional<ValueId> bias;
  if (c.layer.bias != UINT32_MAX) inputs.push_back(*(bias = builder->read(c.layer.bias)));
  Int4Weights weights;
  weights.inputs = c.layer.inputChannels;
  weights.columns = c.layer.outputChannels;
  weights.blockSize = c.blockSize;
  weights.areScalesHalf = c.areScalesHalf;
  weights.pairs = builder->constantOf(filter);
  weights.scales = builder->constantOf(factors);
  Node& node = builder->add("own", std::move(inputs), {c.destination});
  node.create = [c = std::move(c), weights, bias]() -> Result<std::unique_ptr<Kernel>> {
    Int4Weights matrix = weights;
    HEARTH_ASSIGN(const uint8_t* sums,
                  c.weights->pack(c.place, "FULLY_CONNECTED", c.packed.get(),
                                  matrix.columns * sizeof(float), [&](uint8_t* bytes) {
                                    auto* values = reinterpret_cast<float*>(bytes);
                                    for (size_t i = 0; i < matrix.columns; ++i)
                                      values[i] = int4ColumnSum(weights, i);
                                  }));
    matrix.sums = reinterpret_cast<const float*>(sums);
    return makeFunctionKernel([c, matrix, bias](const KernelRun& run) {
      return computeInPlace(c, matrix, bias ? run.at<const float>(*bias) : nullptr, run);
    });
  };
}

}  // namespace

Result<bool> addBlockFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  if (!typesFit(builder, layer))
    return builder->decline("its inputs are not float32, or its block scales not constant floats");
  Creation c;
  c.layer = layer;
  c.blockSize = layer.inputChannels / builder->tensor(layer.blockScales).dimensions[1];
  c.areScalesHalf = builder->operand(layer.blockScales).type == OperandType::kTensorFloat16;
  c.floats = ops::activationRange(layer.activation);
  c.weights = builder->weights();
  c.source = quantizeRows(builder, layer.input, layer.rows, layer.inputChannels);
  c.destination = builder->write(layer.output);
  if (hasInt4Product(layer.inputChannels, c.blockSize))
    addPacked(builder, std::move(c));
  else
    addInPlace(builder, std::move(c));
  return true;
}

Result<bool> addChannelInt4FullyConnected(PlanBuilder* builder, const FullyConnected& layer,
                                          const graph::Operand& filter) {
  if (!hasInt4ChannelProduct(layer.inputChannels)) return false;
  Creation c;
  c.layer = layer;
  c.blockSize = layer.inputChannels;
  c.isByChannel = true;
  c.floats = ops::activationRange(layer.activation);
  c.weights = builder->weights();
  c.source = quantizeRows(builder, layer.input, layer.rows, layer.inputChannels);
  c.destination = builder->write(layer.output);
  HEARTH_TRY(addPackedByChannel(builder, filter, std::move(c)));
  return true;
}

}  // namespace hearth::cpu
