// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION: each row along an axis divided by its Euclidean length. Inputs: data, axis
// (optional, the last one).
#include <algorithm>
#include <cmath>

#include "base/vector_dispatch.h"
#include "ops/axis_rows.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr double kSmallestLength = 1e-6;  // rows of zeros stay zeros

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(1, 2, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors | kQuant8Tensors));
  HEARTH_TRY(signature.optionalInputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  if (signature.isInputOfType(0, OperandType::kTensorQuant8Asymm))
    return signature.outputQuantization(0, 1.0f / 128, 128);
  if (signature.isInputOfType(0, OperandType::kTensorQuant8AsymmSigned))
    return signature.outputQuantization(0, 1.0f / 128, 0);
  return {};
}

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1, -1));
  return resolveAxis(context, axis, context.inputs[0].rank());
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_TRY(parseAxis(context));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

// Neighbours: sums of every eighth square, so that the loop vectorises.
void normalizeRow(const float* input, float* output, size_t size) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    constexpr size_t kLanes = 8;
    double sums[kLanes] = {};
    const size_t whole = size / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double value = input[i + lane];
        sums[lane] += value * value;
      }
    }
    double sum = 0.0;
    for (const double part : sums) sum += part;
    for (size_t i = whole; i < size; ++i) {
      const double value = input[i];
      sum += value * value;
    }
    const double factor = 1.0 / std::max(std::sqrt(sum), kSmallestLength);
#pragma GCC ivdep
    for (size_t i = 0; i < size; ++i)
      output[i] = static_cast<float>(static_cast<double>(input[i]) * factor);
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  const AxisBlocks blocks(context.inputs[0].dimensions, axis);
  if (blocks.inner == 1 && blocks.size != 0) {
    threads::forRanges(context.threadPool, blocks.outer,
                       threads::grainOf(blocks.size * sizeof(float)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t row = begin; row < end; ++row)
                           normalizeRow(input.data() + row * blocks.size,
                                        output.data() + row * blocks.size, blocks.size);
                       });
    output.store();
    return {};
  }
  forEachAxisRow(context.inputs[0].dimensions, axis, [&](const AxisRow& row) {
    double sum = 0.0;
    for (size_t i = 0; i < row.size; ++i) {
      const double value = input[row.index(i)];
      sum += value * value;
    }
    const double length = std::max(std::sqrt(sum), kSmallestLength);
    for (size_t i = 0; i < row.size; ++i)
      output[row.index(i)] = static_cast<float>(input[row.index(i)] / length);
  });
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kL2NormalizationOperation = {OperationType::kL2Normalization, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
