// SPDX-License-Identifier: Apache-2.0
// Conversions between types and forms of storage.
#include "frontends/tflite/sparse_constant.h"
#include "frontends/tflite/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Status translateCast(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  return view.emit(type, {input});
}

Status translateDequantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  // NNAPI's DEQUANTIZE does not widen floats.
  const bool isFloat = view.operand(input).type == OperandType::kTensorFloat16;
  return view.emit(isFloat ? OperationType::kCast : type, {input});
}

Status translateQuantize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  const OperandType inputType = view.operand(input).type;
  if (inputType == OperandType::kTensorFloat32 || inputType == OperandType::kTensorFloat16)
    return view.emit(type, {input});
  // NNAPI quantises floats only; requantisation takes the way over them.
  graph::Operand wide;
  wide.type = OperandType::kTensorFloat32;
  wide.dimensions = view.operand(input).dimensions;
  wide.isRankZeroTensor = view.operand(input).isRankZeroTensor;
  HEARTH_ASSIGN(const uint32_t middle, view.builder().addOperand(std::move(wide)));
  HEARTH_TRY(view.emit(OperationType::kDequantize, {input}, {middle}));
  return view.emit(type, {middle});
}

// A sparse constant becomes a dense one; no operation is left.
Status translateDensify(OperatorView& view, OperationType) {
  // What is kept of a dense copy, so that files of mostly zeros stay within the import's bounds.
  constexpr uint64_t kChargedPart = 8;
  SubgraphBuilder& builder = view.builder();
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  HEARTH_ASSIGN(const schema::Tensor* source, builder.tensor(view.inputTensor(0)));
  HEARTH_ASSIGN(const std::optional<BufferRange> range,
                builder.model().file().buffer(source->buffer()));
  if (source->sparsity() == nullptr || !range)
    return fail(ErrorCode::kUnsupported, "Its input is no sparse constant.");
  const graph::Operand dense = view.operand(target);
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(dense));
  HEARTH_TRY(builder.model().charge(bytes / kChargedPart));
  HEARTH_ASSIGN(const std::vector<uint8_t> values,
                densify(*source->sparsity(), dense.dimensions, graph::elementSize(dense.type),
                        {builder.model().file().pool()->data() + range->offset, range->length}));
  const graph::DataLocation location = builder.model().copyUncharged(values);
  graph::Operand& operand = builder.operand(target);
  operand.lifetime = graph::Lifetime::kConstantCopy;
  operand.location = location;
  return {};
}

constexpr TranslatorEntry kTranslators[] = {
    {BuiltinOperator::CAST, translateCast, OperationType::kCast},
    {BuiltinOperator::DENSIFY, translateDensify, OperationType::kDequantize},
    {BuiltinOperator::DEQUANTIZE, translateDequantize, OperationType::kDequantize},
    {BuiltinOperator::QUANTIZE, translateQuantize, OperationType::kQuantize},
};

}  // namespace

std::span<const TranslatorEntry> quantizationTranslators() {
  return kTranslators;
}

}  // namespace hearth::tflite
