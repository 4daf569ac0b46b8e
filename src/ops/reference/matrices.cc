// SPDX-License-Identifier: Apache-2.0
// Products of matrices: FULLY_CONNECTED, BATCH_MATMUL and attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/batch_matmul.h"
#include "ops/fixed_point.h"
#include "ops/fully_connected.h"
#include "ops/quantization.h"
#include "ops/reference/kernels.h"
#include "ops/reference/layer.h"
#include "ops/scaled_dot_product_attention.h"

namespace hearth::ops::reference {
namespace {

// The weights of one output. TENSOR_INT4 may have a scale for each run of elements (input 4).
std::vector<double> rowOfWeights(const OperationContext& context, int64_t row, int64_t size) {
  if (!context.hasInput(4)) return weightsAt(context, row * size, 1, size);
  const Tensor& scales = context.inputs[4];
  const int64_t blocks = scales.dimensions[1];
  std::vector<double> weights;
  weights.reserve(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    weights.push_back(storedAt(context.inputs[1], row * size + i) *
                      realAt(scales, row * blocks + i / (size / blocks)));
  return weights;
}

// The matrices, as places of their elements, whose product is one matrix of the output.
struct Matrix {
  int64_t first;
  int64_t rowStep;
  int64_t columnStep;

  Matrix(int64_t number, int64_t rows, int64_t columns, bool isTransposed)
      : first(number * rows * columns),
        rowStep(isTransposed ? 1 : columns),
        columnStep(isTransposed ? rows : 1) {}
  int64_t place(int64_t row, int64_t column) const {
    return first + row * rowStep + column * columnStep;
  }
};

}  // namespace

Status connectFully(const OperationContext& context) {
  HEARTH_ASSIGN(const FullyConnectedParameters p, parseFullyConnected(context));
  const LayerOutput output(context, p.activation);
  visitData(context, p.batches, [&](const auto* data, double zeroPoint) {
    for (int64_t unit = 0; unit < p.units; ++unit) {
      const std::vector<double> weights = rowOfWeights(context, unit, p.inputSize);
      for (int64_t batch = 0; batch < p.batches; ++batch)
        output.put(
            batch * p.units + unit, unit,
            sumOfProducts(data + batch * p.inputSize, 1, zeroPoint, weights.data(), p.inputSize));
    }
  });
  return {};
}

Status multiplyMatrices(const OperationContext& context) {
  HEARTH_ASSIGN(const BatchMatmulParameters p, parseBatchMatmul(context));
  const Tensor& left = context.inputs[0];
  const Tensor& right = context.inputs[1];
  const Tensor& output = context.outputs[0];
  if (countOf(output.dimensions) == 0) return {};
  const OperandType type = output.type();
  const bool areIntegers = type == OperandType::kTensorInt32;
  const bool areSteps = graph::isQuantized(type);
  const QuantizedRange range = quantizedRange(type);
  const graph::Operand& to = *output.operand;
  const double ratio = left.operand->scale / (areSteps ? double{to.scale} : 1.0);
  // TFLite defines 16-bit products by this multiplier. It multiplies the scales as float32.
  const bool hasChannels = right.type() == OperandType::kTensorQuant8SymmPerChannel;
  const auto factorOf = [&](int64_t column) {
    const float scale = hasChannels ? right.operand->perChannel.scales[static_cast<size_t>(column)]
                                    : right.operand->scale;
    return toFixedMultiplier(static_cast<double>(left.operand->scale * scale) /
                             (areSteps ? double{to.scale} : 1.0));
  };
  const auto numberAt = [&](const Tensor& tensor, int64_t place) {
    return areSteps ? storedAt(tensor, place) - tensor.operand->zeroPoint : realAt(tensor, place);
  };
  const int64_t depth = p.depth;
  std::vector<double> row(p.depth);
  std::vector<double> columns(size_t{p.depth} * p.columns);
  const auto putProduct = [&](const Matrix& a, const Matrix& b, int64_t i, int64_t j,
                              int64_t place) {
    if (areIntegers) {
      // Products keep their lower bits.
      uint32_t sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<uint32_t>(loadAs<int32_t>(left, a.place(i, k))) *
               static_cast<uint32_t>(loadAs<int32_t>(right, b.place(k, j)));
      return putInteger(output, place, static_cast<int32_t>(sum));
    }
    const double sum = sumOfProducts(row.data(), 1, 0.0, columns.data() + j * depth, depth);
    if (!areSteps) return putReal(output, place, sum);
    if (type == OperandType::kTensorQuant16Symm)
      return putStored(output, place,
                       std::clamp(multiplyWide(static_cast<int64_t>(sum), factorOf(j)),
                                  range.lowest, range.highest));
    putStored(output, place,
              roundAndClamp(wrappedSum(sum) * (ratio * right.operand->scale), to.zeroPoint,
                            range.lowest, range.highest));
  };
  forEach(p.outputBatches, [&](const Index& index, int64_t batch) {
    const Matrix a(broadcastPlace(index, p.leftBatches), p.rows, depth, p.isLeftTransposed);
    const Matrix b(broadcastPlace(index, p.rightBatches), depth, p.columns, p.isRightTransposed);
    for (int64_t j = 0; j < p.columns && !areIntegers; ++j)
      for (int64_t k = 0; k < depth; ++k)
        columns[static_cast<size_t>(j * depth + k)] = numberAt(right, b.place(k, j));
    for (int64_t i = 0; i < p.rows; ++i) {
      for (int64_t k = 0; k < depth && !areIntegers; ++k)
        row[static_cast<size_t>(k)] = numberAt(left, a.place(i, k));
      for (int64_t j = 0; j < p.columns; ++j)
        putProduct(a, b, i, j, (batch * p.rows + i) * p.columns + j);
    }
  });
  return {};
}

Status attend(const OperationContext& context) {
  HEARTH_ASSIGN(const AttentionParameters p, parseAttention(context));
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  const bool hasMask = context.hasInput(3);
  const int64_t headsOfGroup = p.heads / p.groups;
  std::vector<double> weights(p.keys);
  forEach({p.batches, p.queries, p.heads}, [&](const Index& index, int64_t row) {
    const int64_t batch = index[0];
    const int64_t head = index[2];
    // The place of the first element of a key or a value.
    const auto placeOfKey = [&](int64_t key, int64_t size) {
      return ((batch * p.keys + key) * p.groups + head / headsOfGroup) * size;
    };
    double greatest = -std::numeric_limits<double>::infinity();
    for (int64_t key = 0; key < p.keys; ++key) {
      double sum = 0;
      for (int64_t i = 0; i < p.size; ++i)
        sum += realAt(context.inputs[0], row * p.size + i) *
               realAt(context.inputs[1], placeOfKey(key, p.size) + i);
      sum *= p.scale;
      if (p.logitCap > 0) sum = p.logitCap * std::tanh(sum / p.logitCap);
      if (hasMask)
        sum += realAt(context.inputs[3],
                      broadcastPlace({batch, head, index[1], key}, context.inputs[3].dimensions));
      weights[static_cast<size_t>(key)] = sum;
      greatest = std::max(greatest, sum);
    }
    // A common summand of the exponents cancels out. The greatest is subtracted, so that none
    // becomes infinite.
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - greatest);
    for (int64_t i = 0; i < p.valueSize; ++i) {
      double sum = 0;
      for (int64_t key = 0; key < p.keys; ++key)
        sum += weights[static_cast<size_t>(key)] / total *
               realAt(context.inputs[2], placeOfKey(key, p.valueSize) + i);
      putReal(context.outputs[0], row * p.valueSize + i, sum);
    }
  });
  return {};
}

}  // namespace hearth::ops::reference
