// SPDX-License-Identifier: Apache-2.0
// The hash tables of one subgraph, as constant operands.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"

namespace hearth::tflite {

class SubgraphBuilder;

// The constants of a hash table; keys and values as HASHTABLE_FIND takes them.
struct TableOperands {
  uint32_t keys;
  uint32_t values;
  uint32_t size;  // TENSOR_INT64 of [1]
};

// By table_id. Used by one thread.
class TableOperandMap {
 public:
  // Fills a table from two constants of a subgraph, unless it is filled already: TFLite's tables
  // ignore a second import. Errors: those of readHashTable().
  Status fill(SubgraphBuilder& builder, int32_t id, const schema::SubGraph& subgraph, int64_t keys,
              int64_t values);
  // kUnsupported for a table that nothing filled before.
  Result<TableOperands> find(int32_t id) const;

 private:
  std::map<int32_t, TableOperands> tables_;
};

}  // namespace hearth::tflite
