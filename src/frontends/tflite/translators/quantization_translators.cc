// SPDX-License-Identifier: Apache-2.0
// Conversions between types and between forms of storage.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// Files whose constants are float16 keep the zeros of an LSTM's states in it, too, and widen them
// into the variables. TFLite widens constants once, before the first run.
Status initializeVariable(OperatorView& view, uint32_t input) {
  const graph::Operand& source = view.operand(input);
  if (!source.isConstant() || source.type != OperandType::kTensorFloat16)
    return fail(ErrorCode::kUnsupported,
                "It writes a variable from {}, only constants of TENSOR_FLOAT16 are supported.",
                graph::describe(source));
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(source));
  HEARTH_TRY(view.builder().model().charge(count * sizeof(float)));
  const uint8_t* data = view.builder().model().model().constantData(source);
  std::vector<uint8_t> values(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    _Float16 half;
    std::memcpy(&half, data + i * sizeof(half), sizeof(half));
    const auto value = static_cast<float>(half);
    std::memcpy(values.data() + i * sizeof(value), &value, sizeof(value));
  }
  return view.builder().initializeVariable(view.outputTensor(0), std::move(values));
}

// The reader checks the scale of TENSOR_INT32 and leaves it out: that of a bias follows from its
// layer, and no other operation than these has a use for one.
struct Int32Quantization {
  float scale = 0.0f;
  float zeroPoint = 0.0f;
};

Result<Int32Quantization> int32Quantization(OperatorView& view, int64_t index) {
  HEARTH_ASSIGN(const schema::Tensor* tensor, view.builder().tensor(index));
  const std::string name = cleanText(tensor->name());
  const schema::QuantizationParameters* source = tensor->quantization();
  const auto* scales = source == nullptr ? nullptr : source->scale();
  if (scales == nullptr || scales->size() != 1)
    return fail(ErrorCode::kUnsupported, "The INT32 tensor \"{}\" has {} scales, it must have 1.",
                name, scales == nullptr ? 0 : scales->size());
  Int32Quantization result;
  result.scale = scales->Get(0);
  if (result.scale == 0.0f)
    return fail(ErrorCode::kBadData, "The scale of the INT32 tensor \"{}\" is 0.", name);
  const auto* zeroPoints = source->zero_point();
  if (zeroPoints != nullptr && zeroPoints->size() > 0)
    result.zeroPoint = static_cast<float>(zeroPointAt(*zeroPoints, 0));
  return result;
}

// Emits one of the operations ADD, SUB, MUL and DIV with a number.
Status emitWithNumber(OperatorView& view, OperationType type, uint32_t input, float number,
                      uint32_t output) {
  HEARTH_ASSIGN(const uint32_t operand, view.floatTensor(number, {}));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  return view.emit(type, {input, operand, none}, {output});
}

// Emits operations that write the real values of input 0, an INT32 tensor, to `output`.
Status dequantizeInt32(OperatorView& view, uint32_t input, uint32_t output) {
  HEARTH_ASSIGN(const Int32Quantization quantization, int32Quantization(view, view.inputTensor(0)));
  HEARTH_ASSIGN(const uint32_t steps, view.floatsLike(input));
  HEARTH_TRY(view.emit(OperationType::kCast, {input}, {steps}));
  uint32_t centred = steps;
  if (quantization.zeroPoint != 0.0f) {
    HEARTH_ASSIGN(centred, view.floatsLike(input));
    HEARTH_TRY(emitWithNumber(view, OperationType::kSub, steps, quantization.zeroPoint, centred));
  }
  return emitWithNumber(view, OperationType::kMul, centred, quantization.scale, output);
}

// Emits operations that write `values`, real numbers, to output 0, an INT32 tensor.
Status quantizeToInt32(OperatorView& view, uint32_t values) {
  HEARTH_ASSIGN(const Int32Quantization quantization,
                int32Quantization(view, view.outputTensor(0)));
  HEARTH_ASSIGN(const uint32_t divided, view.floatsLike(values));
  HEARTH_TRY(emitWithNumber(view, OperationType::kDiv, values, quantization.scale, divided));
  HEARTH_ASSIGN(uint32_t steps, view.floatsLike(values));
  HEARTH_TRY(view.emit(OperationType::kRound, {divided}, {steps}));
  if (quantization.zeroPoint != 0.0f) {
    HEARTH_ASSIGN(const uint32_t moved, view.floatsLike(values));
    HEARTH_TRY(emitWithNumber(view, OperationType::kAdd, steps, quantization.zeroPoint, moved));
    steps = moved;
  }
  return view.emit(OperationType::kCast, {steps});
}

Status translateQuantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  const OperandType from = view.operand(input).type;
  const bool isToInt32 = view.operand(output).type == OperandType::kTensorInt32;
  if (from != OperandType::kTensorInt32 && !isToInt32) return view.emit(type, {input});
  uint32_t values = input;
  if (from != OperandType::kTensorFloat32) {
    HEARTH_ASSIGN(values, view.floatsLike(input));
    HEARTH_TRY(from == OperandType::kTensorInt32
                   ? dequantizeInt32(view, input, values)
                   : view.emit(OperationType::kDequantize, {input}, {values}));
  }
  return isToInt32 ? quantizeToInt32(view, values) : view.emit(type, {values});
}

Status translateDequantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  if (view.outputCount() > 0 && view.builder().isVariable(view.outputTensor(0)))
    return initializeVariable(view, input);
  if (view.operand(input).type == OperandType::kTensorInt32) {
    HEARTH_ASSIGN(const uint32_t output, view.output(0));
    return dequantizeInt32(view, input, output);
  }
  // NNAPI's DEQUANTIZE cannot widen floats.
  const bool isFloat = view.operand(input).type == OperandType::kTensorFloat16;
  return view.emit(isFloat ? OperationType::kCast : type, {input});
}

// Sparse constants were made dense when they were read, so no operation is left.
Status translateDensify(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  const graph::Operand& source = view.operand(input);
  graph::Operand& result = view.builder().operand(target);
  if (!source.isConstant())
    return fail(ErrorCode::kUnsupported, "Its input is no sparse constant.");
  if (source.type != result.type || source.dimensions != result.dimensions)
    return fail(ErrorCode::kBadData, "Its input is {}, its output is {}.", graph::describe(source),
                graph::describe(result));
  result.lifetime = source.lifetime;
  result.location = source.location;
  return {};
}

}  // namespace

std::span<const TranslatorEntry> quantizationTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::CAST, translatePlain<1>, OperationType::kCast},
      {BuiltinOperator::DENSIFY, translateDensify, OperationType::kDequantize},
      {BuiltinOperator::DEQUANTIZE, translateDequantize, OperationType::kDequantize},
      {BuiltinOperator::QUANTIZE, translateQuantize, OperationType::kQuantize},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
