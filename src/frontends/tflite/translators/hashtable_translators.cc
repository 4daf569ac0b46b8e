// SPDX-License-Identifier: Apache-2.0
// Hash tables are resources that a model fills once, with constants. They become constants of the
// operations that look something up.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

Status translateHashtable(OperatorView& view, OperationType) {
  if (view.outputCount() != 1)
    return fail(ErrorCode::kBadData, "It has {} outputs, it must have one.", view.outputCount());
  return view.builder().addTableHandle(view.outputTensor(0),
                                       view.options<schema::HashtableOptions>().table_id());
}

Status requireInputs(const OperatorView& view, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!view.hasInput(i)) return fail(ErrorCode::kBadData, "It has no input {}.", i);
  return {};
}

Status translateImport(OperatorView& view, OperationType) {
  HEARTH_TRY(requireInputs(view, 3));
  return view.builder().fillTable(view.inputTensor(0), view.inputTensor(1), view.inputTensor(2));
}

Status translateFind(OperatorView& view, OperationType type) {
  HEARTH_TRY(requireInputs(view, 3));
  HEARTH_ASSIGN(const TableOperands table, view.builder().tableOf(view.inputTensor(0)));
  HEARTH_ASSIGN(const uint32_t elements, view.input(1));
  HEARTH_ASSIGN(const uint32_t missing, view.input(2));
  return view.emit(type, {elements, table.keys, table.values, missing});
}

Status translateSize(OperatorView& view, OperationType) {
  HEARTH_TRY(requireInputs(view, 1));
  HEARTH_ASSIGN(const TableOperands table, view.builder().tableOf(view.inputTensor(0)));
  if (view.outputCount() != 1)
    return fail(ErrorCode::kBadData, "It has {} outputs, it must have one.", view.outputCount());
  return view.builder().bindTensor(view.outputTensor(0), table.size);
}

}  // namespace

std::span<const TranslatorEntry> hashtableTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::HASHTABLE, translateHashtable, OperationType::kHashtableFind},
      {BuiltinOperator::HASHTABLE_IMPORT, translateImport, OperationType::kHashtableFind},
      {BuiltinOperator::HASHTABLE_FIND, translateFind, OperationType::kHashtableFind},
      {BuiltinOperator::HASHTABLE_SIZE, translateSize, OperationType::kHashtableFind},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
