// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/table_operands.h"

#include <span>
#include <utility>

#include "frontends/tflite/reader/hash_table.h"
#include "frontends/tflite/translators/subgraph_builder.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;

// A constant of keys or values; omitted where there are none.
Result<uint32_t> listOperand(SubgraphBuilder& builder, schema::TensorType type,
                             std::span<const uint8_t> bytes, size_t count) {
  const bool isOfStrings = type == schema::TensorType::STRING;
  graph::Operand operand;
  operand.type = isOfStrings ? OperandType::kTensorQuant8Asymm : OperandType::kTensorInt64;
  if (count == 0) return builder.omitted(operand.type);
  operand.scale = isOfStrings ? 1.0f : 0.0f;
  operand.dimensions = {static_cast<uint32_t>(isOfStrings ? bytes.size() : count)};
  return builder.constantTensor(std::move(operand), bytes);
}

}  // namespace

Status TableOperandMap::fill(SubgraphBuilder& builder, int32_t id, const schema::SubGraph& subgraph,
                             int64_t keys, int64_t values) {
  if (tables_.contains(id)) return {};
  HEARTH_ASSIGN(const HashTable table,
                readHashTable(builder.model().file(), subgraph, keys, values));
  TableOperands operands{};
  HEARTH_ASSIGN(operands.keys, listOperand(builder, table.keyType, table.keys, table.count));
  HEARTH_ASSIGN(operands.values, listOperand(builder, table.valueType, table.values, table.count));
  graph::Operand size;
  size.type = OperandType::kTensorInt64;
  size.dimensions = {1};
  const auto count = static_cast<int64_t>(table.count);
  HEARTH_ASSIGN(operands.size,
                builder.constantTensor(std::move(size),
                                       {reinterpret_cast<const uint8_t*>(&count), sizeof count}));
  tables_.emplace(id, operands);
  return {};
}

Result<TableOperands> TableOperandMap::find(int32_t id) const {
  if (const auto found = tables_.find(id); found != tables_.end()) return found->second;
  return fail(ErrorCode::kUnsupported, "Nothing fills the hash table {} before it is used.", id);
}

}  // namespace hearth::tflite
