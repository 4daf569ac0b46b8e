// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL. Inputs: two tensors, and for each whether its matrices are transposed. Both have
// one type, except that a right tensor of 8 bits with zero point 0 may accompany a left one of
// TENSOR_QUANT16_SYMM; it may have a scale for each column.
#include "ops/batch_matmul.h"

#include <algorithm>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/broadcast.h"
#include "ops/convolution.h"
#include "ops/fixed_point.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kTypes =
    kFloatTensors | kQuant8Tensors | OperandType::kTensorInt32 | OperandType::kTensorQuant16Symm;

// Types of a right tensor beside a left one of 16 bits.
constexpr TypeSet kNarrowTypes = OperandType::kTensorQuant8AsymmSigned |
                                 OperandType::kTensorQuant8Symm |
                                 OperandType::kTensorQuant8SymmPerChannel;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 4, 1));
  HEARTH_TRY(signature.inputType(0, kTypes));
  if (signature.isInputOfType(0, OperandType::kTensorQuant16Symm))
    HEARTH_TRY(signature.inputType(1, OperandType::kTensorQuant16Symm | kNarrowTypes));
  else
    HEARTH_TRY(signature.inputTypeLike(1, 0));
  if (signature.isInputOfType(1, kNarrowTypes) && !signature.isInputOfType(0, kNarrowTypes) &&
      signature.input(1).zeroPoint != 0)
    return fail(ErrorCode::kBadData, "Input 1 of {} has the zero point {}, it must be 0.",
                signature.describe(), signature.input(1).zeroPoint);
  HEARTH_TRY(signature.optionalInputType(2, OperandType::kBool));
  HEARTH_TRY(signature.optionalInputType(3, OperandType::kBool));
  HEARTH_TRY(signature.inputRank(0, 2, kMaximumRank));
  HEARTH_TRY(signature.inputRank(1, 2, kMaximumRank));
  return signature.outputTypeLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const BatchMatmulParameters p, parseBatchMatmul(context));
  return context.setOutputDimensions(0, p.outputDimensions());
}

// Copies a matrix so that the elements that one sum multiplies are neighbours in memory.
template <typename From, typename T>
void copyMatrix(const From* source, size_t outer, size_t depth, bool isDepthFirst, T* target) {
  for (size_t i = 0; i < outer; ++i) {
    for (size_t d = 0; d < depth; ++d)
      target[i * depth + d] = isDepthFirst ? source[d * outer + i] : source[i * depth + d];
  }
}

// Calls store(outputIndex, sum) for each element of the output.
template <typename T, typename Store>
void multiply(const BatchMatmulParameters& p, const T* left, const T* right, const Store& store) {
  std::vector<T> rows(size_t{p.rows} * p.depth);
  std::vector<T> columns(size_t{p.columns} * p.depth);
  forEachBroadcast(
      p.outputBatches, p.leftBatches, p.rightBatches, [&](size_t o, size_t l, size_t r) {
        copyMatrix(left + l * rows.size(), p.rows, p.depth, p.isLeftTransposed, rows.data());
        copyMatrix(right + r * columns.size(), p.columns, p.depth, !p.isRightTransposed,
                   columns.data());
        for (size_t i = 0; i < p.rows; ++i) {
          for (size_t j = 0; j < p.columns; ++j)
            store((o * p.rows + i) * p.columns + j,
                  dotProduct(rows.data() + i * p.depth, columns.data() + j * p.depth, p.depth));
        }
      });
}

// Product of 16-bit vectors. The left one is given in two parts: each number is 256 * high + low.
int64_t dotProduct(const int16_t* high, const int16_t* low, const int16_t* right, size_t count) {
  int64_t sum = 0;
  int64_t* result = &sum;
  base::onWidestVectors([=]() HEARTH_INLINE {
    constexpr size_t kPart = 256;  // sums of that many products stay within 32 bits
    int64_t whole = 0;
    for (size_t first = 0; first < count; first += kPart) {
      const size_t last = std::min(count, first + kPart);
      int32_t ofHigh = 0;
      int32_t ofLow = 0;
      for (size_t i = first; i < last; ++i) ofHigh += int32_t{high[i]} * int32_t{right[i]};
      for (size_t i = first; i < last; ++i) ofLow += int32_t{low[i]} * int32_t{right[i]};
      whole += int64_t{ofHigh} * 256 + ofLow;
    }
    *result = whole;
  });
  return sum;
}

// Rounds as TFLite does; the results are the same to the last bit.
void multiplySymmetric16(const OperationContext& context, const BatchMatmulParameters& p) {
  const Tensor& left = context.inputs[0];
  const Tensor& right = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const auto factorFor = [&](float rightScale) {
    return toFixedMultiplier(static_cast<double>(left.operand->scale * rightScale) /
                             static_cast<double>(output.operand->scale));
  };
  std::vector<FixedMultiplier> factors(p.columns, factorFor(right.operand->scale));
  if (right.type() == OperandType::kTensorQuant8SymmPerChannel)
    std::ranges::transform(right.operand->perChannel.scales, factors.begin(), factorFor);
  const size_t depth = p.depth;
  std::vector<int16_t> highs(size_t{p.rows} * depth);
  std::vector<int16_t> lows(highs.size());
  std::vector<int16_t> columns(size_t{p.columns} * depth);
  forEachBroadcast(
      p.outputBatches, p.leftBatches, p.rightBatches, [&](size_t o, size_t l, size_t r) {
        copyMatrix(left.as<int16_t>() + l * highs.size(), p.rows, depth, p.isLeftTransposed,
                   highs.data());
        if (right.type() == OperandType::kTensorQuant16Symm)
          copyMatrix(right.as<int16_t>() + r * columns.size(), p.columns, depth,
                     !p.isRightTransposed, columns.data());
        else
          copyMatrix(right.as<int8_t>() + r * columns.size(), p.columns, depth,
                     !p.isRightTransposed, columns.data());
        for (size_t i = 0; i < highs.size(); ++i) {
          lows[i] = static_cast<int16_t>(highs[i] & 255);
          highs[i] = static_cast<int16_t>(highs[i] >> 8);
        }
        int16_t* values = output.as<int16_t>() + o * p.rows * p.columns;
        const uint64_t work = uint64_t{p.columns} * depth * sizeof(int16_t);
        threads::forRanges(
            context.threadPool, p.rows, threads::grainOf(work), [&](uint64_t begin, uint64_t end) {
              for (uint64_t i = begin; i < end; ++i) {
                for (size_t j = 0; j < p.columns; ++j) {
                  const int64_t sum = dotProduct(highs.data() + i * depth, lows.data() + i * depth,
                                                 columns.data() + j * depth, depth);
                  values[i * p.columns + j] = static_cast<int16_t>(
                      std::clamp(multiplyWide(sum, factors[j]), -32768, 32767));
                }
              }
            });
      });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const BatchMatmulParameters p, parseBatchMatmul(context));
  const Tensor& left = context.inputs[0];
  const Tensor& right = context.inputs[1];
  const Tensor& output = context.outputs[0];
  if (output.type() == OperandType::kTensorInt32) {
    int32_t* values = output.as<int32_t>();
    multiply(p, left.as<int32_t>(), right.as<int32_t>(),
             [&](size_t index, int32_t sum) { values[index] = sum; });
  } else if (output.type() == OperandType::kTensorQuant16Symm) {
    multiplySymmetric16(context, p);
  } else if (kQuant8Tensors.contains(output.type())) {
    const Requantization requantization = makeRequantization(context, FusedActivation::kNone);
    uint8_t* bytes = output.as<uint8_t>();
    multiply(p, centredValues(left).data(), centredValues(right).data(),
             [&](size_t index, int32_t sum) {
               bytes[index] = static_cast<uint8_t>(requantization.apply(sum, 0));
             });
  } else {
    RealOutput values(output);
    multiply(p, RealInput(left).data(), RealInput(right).data(),
             [&](size_t index, float sum) { values[index] = sum; });
    values.store();
  }
  return {};
}

}  // namespace

Result<BatchMatmulParameters> parseBatchMatmul(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 2, kMaximumRank));
  HEARTH_TRY(requireRank(context, 1, 2, kMaximumRank));
  BatchMatmulParameters p;
  HEARTH_ASSIGN(p.isLeftTransposed, context.scalar<bool>(2, false));
  HEARTH_ASSIGN(p.isRightTransposed, context.scalar<bool>(3, false));
  const Dimensions& left = context.inputs[0].dimensions;
  const Dimensions& right = context.inputs[1].dimensions;
  const uint32_t* leftMatrix = left.data() + left.size() - 2;
  const uint32_t* rightMatrix = right.data() + right.size() - 2;
  p.rows = leftMatrix[p.isLeftTransposed ? 1 : 0];
  p.depth = leftMatrix[p.isLeftTransposed ? 0 : 1];
  p.columns = rightMatrix[p.isRightTransposed ? 0 : 1];
  const uint32_t rightDepth = rightMatrix[p.isRightTransposed ? 1 : 0];
  if (p.depth != rightDepth)
    return fail(ErrorCode::kBadData,
                "The matrices {} and {} of {} have {} columns and {} rows, these must be equal.",
                graph::describeDimensions(left), graph::describeDimensions(right),
                context.describe(), p.depth, rightDepth);
  if (context.inputs[1].type() == OperandType::kTensorQuant8SymmPerChannel) {
    const graph::PerChannelQuantization& channels = context.inputs[1].operand->perChannel;
    const size_t columnDimension = right.size() - (p.isRightTransposed ? 2 : 1);
    if (channels.channelDim != columnDimension || channels.scales.size() != p.columns)
      return fail(ErrorCode::kBadData,
                  "Input 1 of {} has {} scales along dimension {}, it must have {} along {}.",
                  context.describe(), channels.scales.size(), channels.channelDim, p.columns,
                  columnDimension);
  }
  p.leftBatches.assign(left.begin(), left.end() - 2);
  p.rightBatches.assign(right.begin(), right.end() - 2);
  HEARTH_ASSIGN(p.outputBatches, broadcastShapes(context, p.leftBatches, p.rightBatches));
  return p;
}

const OperationDefinition kBatchMatmulOperation = {OperationType::kBatchMatmul, validate, prepare,
                                                   execute};

}  // namespace hearth::ops
