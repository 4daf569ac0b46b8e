// SPDX-License-Identifier: Apache-2.0
// Conversions between types and between forms of storage.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// CAST, and QUANTIZE, which also takes quantised numbers.
Status translateConversion(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  return view.emit(type, {input});
}

Status translateDequantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
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
    {BuiltinOperator::CAST, translateConversion, OperationType::kCast},
    {BuiltinOperator::DENSIFY, translateDensify, OperationType::kDequantize},
    {BuiltinOperator::DEQUANTIZE, translateDequantize, OperationType::kDequantize},
    {BuiltinOperator::QUANTIZE, translateConversion, OperationType::kQuantize},
};

}  // namespace

std::span<const TranslatorEntry> quantizationTranslators() {
  return kTranslators;
}

}  // namespace hearth::tflite
