// SPDX-License-Identifier: Apache-2.0
#include "ops/validation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"
#include "ops/half.h"

namespace hearth::ops {
namespace {

std::string range(size_t minimum, size_t maximum) {
  return minimum == maximum ? base::formatText("{}", minimum)
                            : base::formatText("{} to {}", minimum, maximum);
}

// Relative, so that scales of any magnitude are treated alike.
bool isSameScale(float a, float b) {
  return std::abs(a - b) <= 1e-5f * std::max(std::abs(a), std::abs(b));
}

bool hasKnownRank(const graph::Operand& operand) {
  return !operand.dimensions.empty() || operand.isRankZeroTensor || graph::isScalar(operand.type);
}

Status checkType(const char* kind, size_t index, const graph::Operand& operand, TypeSet allowed,
                 const Signature& signature) {
  if (allowed.contains(operand.type)) return {};
  return fail(ErrorCode::kBadData, "{} {} of {} is {}, it must be {}.", kind, index,
              signature.describe(), graph::describe(operand), allowed.describe());
}

Status checkRank(const char* role, size_t index, const graph::Operand& operand, size_t minimum,
                 size_t maximum, const Signature& signature) {
  const size_t rank = operand.dimensions.size();
  if (!hasKnownRank(operand) || (rank >= minimum && rank <= maximum)) return {};
  return fail(ErrorCode::kBadData, "{} {} of {} is {}, its rank must be {}.", role, index,
              signature.describe(), graph::describe(operand), range(minimum, maximum));
}

}  // namespace

std::string TypeSet::describe() const {
  constexpr std::string_view kPrefix = "TENSOR_";
  std::string scalars;
  std::string tensors;
  size_t tensorCount = 0;
  for (const graph::OperandTypeInfo& info : graph::operandTypes()) {
    if (!contains(info.type)) continue;
    const std::string_view name = info.name;
    const bool isTensor = name.starts_with(kPrefix);
    std::string& text = isTensor ? tensors : scalars;
    if (!text.empty()) text += isTensor ? "," : ", ";
    text += isTensor ? name.substr(kPrefix.size()) : name;
    tensorCount += isTensor;
  }
  if (tensorCount == 0) return scalars;
  tensors = tensorCount == 1 ? base::formatText("{}{}", kPrefix, tensors)
                             : base::formatText("{}{{{}}}", kPrefix, tensors);
  return scalars.empty() ? tensors : base::formatText("{} or {}", scalars, tensors);
}

Status Signature::counts(size_t minInputs, size_t maxInputs, size_t minOutputs,
                         size_t maxOutputs) const {
  if (inputCount() < minInputs || inputCount() > maxInputs)
    return fail(ErrorCode::kBadData, "{} has {} inputs, it must have {}.", describe(), inputCount(),
                range(minInputs, maxInputs));
  if (outputCount() < minOutputs || outputCount() > maxOutputs)
    return fail(ErrorCode::kBadData, "{} has {} outputs, it must have {}.", describe(),
                outputCount(), range(minOutputs, maxOutputs));
  return {};
}

Status Signature::inputType(size_t index, TypeSet allowed) const {
  if (!hasInput(index))
    return fail(ErrorCode::kBadData, "Input {} of {} is omitted, it must be {}.", index, describe(),
                allowed.describe());
  return checkType("Input", index, input(index), allowed, *this);
}

Status Signature::inputTypeLike(size_t index, size_t otherInput) const {
  return inputType(index, input(otherInput).type);
}

Status Signature::optionalInputType(size_t index, TypeSet allowed) const {
  return hasInput(index) ? inputType(index, allowed) : Status();
}

Status Signature::optionalInputTypeLike(size_t index, size_t otherInput) const {
  return hasInput(index) ? inputTypeLike(index, otherInput) : Status();
}

Status Signature::floatScalar(size_t index, size_t dataInput) const {
  return inputType(index, input(dataInput).type == OperandType::kTensorFloat16
                              ? OperandType::kFloat16
                              : OperandType::kFloat32);
}

Status Signature::outputType(size_t index, TypeSet allowed) const {
  if (index >= outputCount())
    return fail(ErrorCode::kBadData, "{} lacks its output {}.", describe(), index);
  return checkType("Output", index, output(index), allowed, *this);
}

Status Signature::outputTypeLike(size_t index, size_t otherInput) const {
  return outputType(index, input(otherInput).type);
}

Status Signature::inputRank(size_t index, size_t minimum, size_t maximum) const {
  if (!hasInput(index)) return {};
  return checkRank("Input", index, input(index), minimum, maximum, *this);
}

Status Signature::outputRank(size_t index, size_t minimum, size_t maximum) const {
  return checkRank("Output", index, output(index), minimum, maximum, *this);
}

Status Signature::sameQuantization(size_t inputA, size_t inputB) const {
  const graph::Operand& a = input(inputA);
  const graph::Operand& b = input(inputB);
  if (!graph::isQuantized(a.type) || isSameQuantization(a, b)) return {};
  return fail(ErrorCode::kBadData,
              "Input {} of {} has scale {} and zero point {}, input {} has {} and {}; they must be "
              "equal.",
              inputA, describe(), a.scale, a.zeroPoint, inputB, b.scale, b.zeroPoint);
}

Status Signature::outputQuantizationLike(size_t index, size_t inputIndex) const {
  if (!graph::isQuantized(output(index).type)) return {};
  const graph::Operand& a = output(index);
  const graph::Operand& b = input(inputIndex);
  if (isSameQuantization(a, b)) return {};
  return fail(ErrorCode::kBadData,
              "Output {} of {} has scale {} and zero point {}, input {} has {} and {}; they must "
              "be equal.",
              index, describe(), a.scale, a.zeroPoint, inputIndex, b.scale, b.zeroPoint);
}

Status Signature::outputQuantization(size_t index, float scale, int32_t zeroPoint) const {
  const graph::Operand& operand = output(index);
  if (isSameScale(operand.scale, scale) && operand.zeroPoint == zeroPoint) return {};
  return fail(ErrorCode::kBadData,
              "Output {} of {} has scale {} and zero point {}, they must be {} and {}.", index,
              describe(), operand.scale, operand.zeroPoint, scale, zeroPoint);
}

std::string Signature::describe() const {
  std::string text = graph::nameOf(operation_.type);
  if (!operation_.name.empty()) text += base::formatText(" \"{}\"", operation_.name);
  return text;
}

bool isSameQuantization(const graph::Operand& a, const graph::Operand& b) {
  return a.zeroPoint == b.zeroPoint && isSameScale(a.scale, b.scale);
}

Status requireArguments(const OperationContext& context, size_t inputs, size_t outputs) {
  for (size_t i = 0; i < inputs; ++i) {
    if (!context.hasInput(i))
      return fail(ErrorCode::kBadData, "{} lacks its input {}.", context.describe(), i);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!context.hasOutput(i))
      return fail(ErrorCode::kBadData, "{} lacks its output {}.", context.describe(), i);
  }
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.hasInput(i) && !context.inputs[i].hasKnownShape)
      return needsRuntimeValue(context, i);
  }
  return {};
}

Status requireRank(const OperationContext& context, size_t input, size_t minimum, size_t maximum) {
  const size_t rank = context.inputs[input].rank();
  if (rank >= minimum && rank <= maximum) return {};
  return fail(ErrorCode::kBadData, "Input {} of {} has the shape {}, its rank must be {}.", input,
              context.describe(), graph::describeDimensions(context.inputs[input].dimensions),
              range(minimum, maximum));
}

Status requireOneElement(const OperationContext& context, size_t input) {
  const uint64_t count = context.inputs[input].elementCount();
  if (count == 1) return {};
  return fail(ErrorCode::kBadData, "Input {} of {} has {} elements, it must have one.", input,
              context.describe(), count);
}

Status requireShape(const OperationContext& context, size_t input, const Dimensions& expected) {
  if (!context.hasInput(input) || context.inputs[input].dimensions == expected) return {};
  return fail(ErrorCode::kBadData, "Input {} of {} has the shape {}, it must be {}.", input,
              context.describe(), graph::describeDimensions(context.inputs[input].dimensions),
              graph::describeDimensions(expected));
}

Result<float> floatScalar(const OperationContext& context, size_t index) {
  if (!context.hasInput(index) || context.inputs[index].type() != OperandType::kFloat16)
    return context.scalar<float>(index);
  const Tensor& tensor = context.inputs[index];
  if (tensor.data == nullptr)
    return fail(ErrorCode::kUnsupported, "Input {} of {} must be a constant.", index,
                context.describe());
  Half value;
  std::memcpy(&value, tensor.data, sizeof(value));
  return static_cast<float>(value);
}

Result<float> floatScalar(const OperationContext& context, size_t index, float fallback) {
  if (!context.hasInput(index)) return fallback;
  return floatScalar(context, index);
}

Result<size_t> resolveAxis(const OperationContext& context, int64_t axis, size_t rank) {
  const int64_t signedRank = static_cast<int64_t>(rank);
  if (axis < -signedRank || axis >= signedRank)
    return fail(ErrorCode::kBadData, "The axis {} of {} is outside [{}, {}).", axis,
                context.describe(), -signedRank, signedRank);
  return static_cast<size_t>(axis < 0 ? axis + signedRank : axis);
}

}  // namespace hearth::ops
