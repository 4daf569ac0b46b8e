// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

bool is8Bit(OperandType type) {
  return type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned;
}

bool sameQuantization(const graph::Operand& a, const graph::Operand& b) {
  return a.scale == b.scale && a.zeroPoint == b.zeroPoint;
}

// For each of the 256 values of an 8-bit input, the value in the output's scale and zero point.
template <typename T>
std::array<T, 256> requantizationTable(const graph::Operand& from, const graph::Operand& to) {
  constexpr int kLowest = std::numeric_limits<T>::min();
  constexpr int kHighest = std::numeric_limits<T>::max();
  const float scale = from.scale / to.scale;
  const float bias = -static_cast<float>(from.zeroPoint) * scale;
  std::array<T, 256> table;
  for (int value = kLowest; value <= kHighest; ++value) {
    float scaled =
        std::round(static_cast<float>(value) * scale + bias) + static_cast<float>(to.zeroPoint);
    // With scales so far apart that both terms are infinite, a number becomes the bound of the
    // range on its side of zero.
    if (std::isnan(scaled))
      scaled = value == from.zeroPoint
                   ? static_cast<float>(to.zeroPoint)
                   : static_cast<float>(value < from.zeroPoint ? kLowest : kHighest);
    table[static_cast<uint8_t>(value)] = static_cast<T>(
        std::clamp(scaled, static_cast<float>(kLowest), static_cast<float>(kHighest)));
  }
  return table;
}

template <typename T>
void copyRequantized(const Tensor& input, const graph::Operand& output, int64_t outer, int64_t row,
                     int64_t stride, T* target) {
  const std::array<T, 256> table = requantizationTable<T>(*input.operand, output);
  const T* source = input.as<T>();
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < row; ++j)
      target[i * stride + j] = table[static_cast<uint8_t>(source[i * row + j])];
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, SIZE_MAX, 1));
  const size_t tensorCount = signature.inputCount() - 1;
  HEARTH_TRY(signature.inputType(0, kMovedTensors));
  for (size_t i = 0; i < tensorCount; ++i) {
    HEARTH_TRY(signature.inputTypeLike(i, 0));
    HEARTH_TRY(signature.inputRank(i, 1, kMaximumRank));
    if (!kQuant8Tensors.contains(signature.input(i).type))
      HEARTH_TRY(signature.outputQuantizationLike(0, i));
  }
  HEARTH_TRY(signature.inputType(tensorCount, OperandType::kInt32));
  return signature.outputTypeLike(0, 0);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const ConcatenationParameters parameters, parseConcatenation(context));
  const Tensor& output = context.outputs[0];
  const size_t element = graph::elementSize(output.type());
  int64_t outer = 1;
  for (size_t i = 0; i < parameters.axis; ++i) outer *= parameters.dimensions[i];
  int64_t inner = 1;
  for (size_t i = parameters.axis + 1; i < parameters.dimensions.size(); ++i)
    inner *= parameters.dimensions[i];
  const int64_t stride = inner * parameters.dimensions[parameters.axis];
  int64_t position = 0;
  for (size_t i = 0; i < parameters.tensorCount; ++i) {
    const Tensor& input = context.inputs[i];
    const int64_t row = inner * input.dimensions[parameters.axis];
    uint8_t* target = output.as<uint8_t>() + static_cast<size_t>(position) * element;
    if (!is8Bit(output.type()) || sameQuantization(*input.operand, *output.operand))
      copyStrided(element, {{outer, row, stride}, {row, 1, 1}}, input.data, target,
                  context.threadPool);
    else if (output.type() == OperandType::kTensorQuant8Asymm)
      copyRequantized<uint8_t>(input, *output.operand, outer, row, stride, target);
    else
      copyRequantized<int8_t>(input, *output.operand, outer, row, stride,
                              reinterpret_cast<int8_t*>(target));
    position += row;
  }
  return {};
}

}  // namespace

std::array<uint8_t, 256> requantizedBytes(const graph::Operand& input,
                                          const graph::Operand& output) {
  if (output.type == OperandType::kTensorQuant8Asymm)
    return requantizationTable<uint8_t>(input, output);
  return std::bit_cast<std::array<uint8_t, 256>>(requantizationTable<int8_t>(input, output));
}

Result<ConcatenationParameters> parseConcatenation(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, context.inputs.size(), 1));
  ConcatenationParameters parameters;
  parameters.tensorCount = context.inputs.size() - 1;
  parameters.dimensions = context.inputs[0].dimensions;
  const size_t rank = parameters.dimensions.size();
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(parameters.tensorCount));
  HEARTH_ASSIGN(parameters.axis, resolveAxis(context, axis, rank));
  int64_t size = 0;
  for (size_t i = 0; i < parameters.tensorCount; ++i) {
    const Dimensions& dimensions = context.inputs[i].dimensions;
    bool fits = dimensions.size() == rank;
    for (size_t d = 0; fits && d < rank; ++d)
      fits = d == parameters.axis || dimensions[d] == parameters.dimensions[d];
    if (!fits)
      return fail(ErrorCode::kBadData,
                  "Input {} of {} has the shape {}, input 0 has {}; they may differ in dimension "
                  "{} only.",
                  i, context.describe(), graph::describeDimensions(dimensions),
                  graph::describeDimensions(context.inputs[0].dimensions), parameters.axis);
    size += dimensions[parameters.axis];
  }
  HEARTH_ASSIGN(parameters.dimensions[parameters.axis], toDimension(context, size));
  return parameters;
}

const OperationDefinition kConcatenationOperation = {
    OperationType::kConcatenation, validate, prepareParsedShape<parseConcatenation>, execute};

}  // namespace hearth::ops
