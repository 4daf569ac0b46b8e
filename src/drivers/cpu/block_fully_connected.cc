// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/block_fully_connected.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/function_kernel.h"
#include "drivers/cpu/int4_gemm.h"
#include "drivers/cpu/quantized_rows.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

struct Creation {
  FullyConnected layer;
  Int4Weights matrix;  // without sums
  ops::ActivationRange floats{};
  PackedWeights* weights = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;
  QuantizedRows source;
  ValueId bias = 0, prepared = 0, destination = 0;
  bool hasBias = false;
};

bool typesFit(PlanBuilder* builder, const FullyConnected& layer) {
  const auto isConstantFloat = [&](uint32_t operand) {
    return builder->operand(operand).isConstant() &&
           builder->operand(operand).type == OperandType::kTensorFloat32;
  };
  const graph::Operand& filter = builder->operand(layer.filter);
  // Columns begin at whole bytes, and sums over a run stay within 32 bits.
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

void finish(const Creation& c, const float* bias, size_t first, size_t last, float* output) {
  for (size_t row = 0; row < c.layer.rows; ++row) {
    float* values = output + row * c.layer.outputChannels;
    for (size_t i = first; i < last; ++i)
      values[i] = c.floats.apply(bias == nullptr ? values[i] : values[i] + bias[i]);
  }
}

Status compute(const Creation& c, const Int4Weights& matrix, const KernelRun& run) {
  const size_t rows = c.layer.rows;
  const size_t inputs = matrix.inputs;
  const auto* numbers = run.at<const int8_t>(c.source.numbers);
  const auto* parameters = run.at<const struct xnn_quantization_params>(c.source.parameters);
  auto* prepared = run.at<uint8_t>(c.prepared);
  std::vector<float> scales(rows);
  std::vector<float> zeroPoints(rows);
  threads::forRanges(run.pool, rows, threads::grainOf(inputs), [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      int4Prepare(numbers + row * inputs, matrix, prepared + row * int4RowBytes(inputs));
      scales[row] = parameters[row].scale;
      zeroPoints[row] = static_cast<float>(parameters[row].zero_point);
    }
  });
  const Int4Rows given{prepared, scales.data(), zeroPoints.data(), rows};
  auto* output = run.at<float>(c.destination);
  const float* bias = c.hasBias ? run.at<float>(c.bias) : nullptr;
  constexpr size_t kStep = 16;
  const size_t steps = (matrix.columns + kStep - 1) / kStep;
  const uint64_t grain = std::max<uint64_t>(1, threads::grainOf(kStep * inputs / 2) / rows);
  threads::forRanges(run.pool, steps, grain, [&](uint64_t begin, uint64_t end) {
    const size_t first = begin * kStep;
    const size_t last = std::min<size_t>(matrix.columns, end * kStep);
    int4Multiply(matrix, given, first, last, output);
    finish(c, bias, first, last, output);
  });
  return {};
}

}  // namespace

Result<bool> addBlockFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  if (!typesFit(builder, layer)) return false;
  Creation c;
  c.layer = layer;
  c.place = {builder->currentOperation(), 0};
  const uint32_t operands[] = {layer.filter, layer.blockScales};
  const uint64_t parameters[] = {layer.inputChannels, layer.outputChannels};
  c.packed = builder->packingSource(operands, parameters);
  c.floats = ops::activationRange(layer.activation);
  c.weights = builder->weights();
  c.source = quantizeRows(builder, layer.input, layer.rows, layer.inputChannels);
  // The constants are read at each run: values keep them where they can be read.
  const ValueId filter = builder->read(layer.filter);
  const ValueId factors = builder->read(layer.blockScales);
  std::vector<ValueId> inputs = {c.source.numbers, c.source.parameters, filter, factors};
  c.hasBias = layer.bias != UINT32_MAX;
  if (c.hasBias) inputs.push_back(c.bias = builder->read(layer.bias));
  c.matrix.inputs = layer.inputChannels;
  c.matrix.columns = layer.outputChannels;
  c.matrix.blockSize = layer.inputChannels / builder->tensor(layer.blockScales).dimensions[1];
  c.matrix.areScalesHalf = builder->operand(layer.blockScales).type == OperandType::kTensorFloat16;
  c.prepared = builder->temporary(layer.rows * int4RowBytes(layer.inputChannels));
  c.destination = builder->write(layer.output);
  c.matrix.pairs = builder->constantOf(filter);
  c.matrix.scales = builder->constantOf(factors);
  Node& node = builder->add("own", std::move(inputs), {c.destination, c.prepared});
  node.create = [shared = std::make_shared<const Creation>(
                     std::move(c))]() -> Result<std::unique_ptr<Kernel>> {
    Int4Weights matrix = shared->matrix;
    HEARTH_ASSIGN(const uint8_t* sums,
                  shared->weights->pack(shared->place, "FULLY_CONNECTED", shared->packed.get(),
                                        matrix.columns * sizeof(float), [&](uint8_t* bytes) {
                                          auto* values = reinterpret_cast<float*>(bytes);
                                          for (size_t i = 0; i < matrix.columns; ++i)
                                            values[i] = int4ColumnSum(shared->matrix, i);
                                        }));
    matrix.sums = reinterpret_cast<const float*>(sums);
    return makeFunctionKernel(
        [shared, matrix](const KernelRun& run) { return compute(*shared, matrix, run); });
  };
  return true;
}

}  // namespace hearth::cpu
