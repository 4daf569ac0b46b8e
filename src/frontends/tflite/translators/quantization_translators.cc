// SPDX-License-Identifier: Apache-2.0
// Conversions between types and between forms of storage.
#include <cstring>
#include <utility>
#include <vector>

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

Status translateDequantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  if (view.outputCount() > 0 && view.builder().isVariable(view.outputTensor(0)))
    return initializeVariable(view, input);
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

constexpr TranslatorEntry kTranslators[] = {
    {BuiltinOperator::CAST, translatePlain<1>, OperationType::kCast},
    {BuiltinOperator::DENSIFY, translateDensify, OperationType::kDequantize},
    {BuiltinOperator::DEQUANTIZE, translateDequantize, OperationType::kDequantize},
    {BuiltinOperator::QUANTIZE, translatePlain<1>, OperationType::kQuantize},
};

}  // namespace

std::span<const TranslatorEntry> quantizationTranslators() {
  return kTranslators;
}

}  // namespace hearth::tflite
