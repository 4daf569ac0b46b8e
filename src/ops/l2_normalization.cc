// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION: divides each row along an axis by its Euclidean length. Inputs: data, axis
// (optional, default: the last).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/vector_dispatch.h"
#include "ops/axis_rows.h"
#include "ops/dot_product.h"
#include "ops/quantization.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr double kSmallestLength = 1e-6;  // rows of zeros stay zeros

Status validate(const Signature& signature) {
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

constexpr size_t kLanes = kDotLanes;  // neighbours at a time

HEARTH_INLINE inline void normalizeRow(const float* input, float* output, size_t size) {
  // Sums in single precision are kept short.
  constexpr size_t kPart = 64 * kLanes;
  const size_t whole = size / kLanes * kLanes;
  double sum = 0.0;
  for (size_t first = 0; first < whole; first += kPart) {
    const size_t last = whole - first < kPart ? whole : first + kPart;
    DotLanes sums{};
    for (size_t i = first; i < last; i += kLanes) {
      DotLanes values;
      std::memcpy(&values, input + i, sizeof(values));
      sums += values * values;
    }
    sum += static_cast<double>(sumOfLanes(sums));
  }
  for (size_t i = whole; i < size; ++i) {
    const double value = input[i];
    sum += value * value;
  }
  const double length = std::sqrt(sum);
  const auto factor =
      static_cast<float>(1.0 / (length < kSmallestLength ? kSmallestLength : length));
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) output[i] = input[i] * factor;
}

void normalizeRows(const float* input, float* output, uint64_t rows, size_t size) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (uint64_t row = 0; row < rows; ++row)
      normalizeRow(input + row * size, output + row * size, size);
  });
}

// Normalises rows of 8-bit neighbours: the squares are whole numbers, and the output has steps of 1
// / 128.
template <typename T>
void normalizeRows(const Tensor& input, const Tensor& output, uint64_t begin, uint64_t end,
                   size_t size) {
  const T* source = input.as<T>();
  T* target = output.as<T>();
  const int32_t zero = input.operand->zeroPoint;
  const int32_t outputZero = output.operand->zeroPoint;
  const double scale = input.operand->scale;
  constexpr float kSteps = 128.0f;
  const QuantizedRange range = quantizedRange(output.type());
  base::onWidestVectors([=]() HEARTH_INLINE {
    constexpr size_t kPart = 1 << 15;  // sums of that many squares stay within 32 bits
    for (uint64_t row = begin; row < end; ++row) {
      const T* values = source + row * size;
      T* results = target + row * size;
      uint64_t sum = 0;
      for (size_t first = 0; first < size; first += kPart) {
        const size_t last = std::min(size, first + kPart);
        uint32_t part = 0;
        for (size_t i = first; i < last; ++i) {
          const int32_t value = values[i] - zero;
          part += static_cast<uint32_t>(value * value);
        }
        sum += part;
      }
      const double length = scale * std::sqrt(static_cast<double>(sum));
      const auto factor = static_cast<float>(kSteps * scale /
                                             (length > kSmallestLength ? length : kSmallestLength));
#pragma GCC ivdep
      for (size_t i = 0; i < size; ++i) {
        // At most 128, up to rounding.
        const float value = static_cast<float>(values[i] - zero) * factor;
        int32_t rounded = static_cast<int32_t>(value + (value < 0.0f ? -0.5f : 0.5f)) + outputZero;
        rounded = rounded < range.lowest ? range.lowest : rounded;
        results[i] = static_cast<T>(rounded > range.highest ? range.highest : rounded);
      }
    }
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  const AxisBlocks blocks(context.inputs[0].dimensions, axis);
  const OperandType type = context.inputs[0].type();
  if (blocks.inner == 1 && blocks.size != 0 && kQuant8Tensors.contains(type)) {
    const auto normalize =
        type == OperandType::kTensorQuant8Asymm ? normalizeRows<uint8_t> : normalizeRows<int8_t>;
    threads::forRanges(context.threadPool, blocks.outer, threads::grainOf(blocks.size),
                       [&](uint64_t begin, uint64_t end) {
                         normalize(context.inputs[0], context.outputs[0], begin, end, blocks.size);
                       });
    return {};
  }
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  if (blocks.inner == 1 && blocks.size != 0) {
    threads::forRanges(
        context.threadPool, blocks.outer, threads::grainOf(blocks.size * sizeof(float)),
        [&](uint64_t begin, uint64_t end) {
          normalizeRows(input.data() + begin * blocks.size, output.data() + begin * blocks.size,
                        end - begin, blocks.size);
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
