// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/run_once.h"

#include <optional>
#include <utility>

#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/subgraph_builder.h"

namespace hearth::tflite {

Status readRunOnce(SubgraphBuilder& builder, int64_t subgraph, ResourceValues* values,
                   TableOperandMap* filled) {
  ModelBuilder& model = builder.model();
  const schema::SubGraph* called =
      subgraph < 0 ? nullptr : model.file().subgraph(static_cast<size_t>(subgraph));
  if (called == nullptr)
    return fail(ErrorCode::kBadData, "It calls subgraph {} of {}.", subgraph,
                model.file().subgraphCount());
  std::map<int64_t, std::string> handles;
  std::map<int64_t, int32_t> tables;
  if (called->operators() == nullptr) return {};
  for (const schema::Operator* operation : *called->operators()) {
    const schema::OperatorCode* code = model.file().operatorCode(operation->opcode_index());
    const auto* inputs = operation->inputs();
    const auto* outputs = operation->outputs();
    const auto type = code == nullptr ? schema::BuiltinOperator::CUSTOM : builtinCode(*code);
    const auto* handle = operation->builtin_options_as_VarHandleOptions();
    if (type == schema::BuiltinOperator::VAR_HANDLE && handle != nullptr && outputs != nullptr &&
        outputs->size() == 1) {
      std::string name = cleanText(handle->shared_name());
      HEARTH_TRY(model.charge(name.size() + sizeof(std::string)));
      handles.insert_or_assign(outputs->Get(0), std::move(name));
      continue;
    }
    if (type == schema::BuiltinOperator::HASHTABLE && outputs != nullptr && outputs->size() == 1) {
      const auto* const table = operation->builtin_options_as_HashtableOptions();
      HEARTH_TRY(model.charge(sizeof(tables)));
      tables.insert_or_assign(outputs->Get(0), table == nullptr ? 0 : table->table_id());
      continue;
    }
    if (type == schema::BuiltinOperator::HASHTABLE_IMPORT && inputs != nullptr &&
        inputs->size() == 3 && tables.contains(inputs->Get(0))) {
      HEARTH_TRY_CONTEXT(
          filled->fill(builder, tables[inputs->Get(0)], *called, inputs->Get(1), inputs->Get(2)),
          "in subgraph {}", subgraph);
      continue;
    }
    if (type != schema::BuiltinOperator::ASSIGN_VARIABLE || inputs == nullptr ||
        inputs->size() != 2 || !handles.contains(inputs->Get(0)))
      return fail(ErrorCode::kUnsupported,
                  "The subgraph {} that runs once does more than to assign constants and to fill "
                  "hash tables.",
                  subgraph);
    const schema::Tensor* value = model.file().tensor(*called, inputs->Get(1));
    if (value == nullptr)
      return fail(ErrorCode::kBadData, "Subgraph {} assigns tensor {}.", subgraph, inputs->Get(1));
    HEARTH_ASSIGN(const std::optional<BufferRange> range, model.file().buffer(value->buffer()));
    if (!range || value->sparsity() != nullptr)
      return fail(ErrorCode::kUnsupported, "Subgraph {} assigns a value that is no constant.",
                  subgraph);
    HEARTH_TRY(model.charge(range->length));
    const uint8_t* data = model.file().bytes(*range).data();
    values->insert_or_assign(handles[inputs->Get(0)],
                             std::vector<uint8_t>(data, data + range->length));
  }
  return {};
}

}  // namespace hearth::tflite
