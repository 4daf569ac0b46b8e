// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"

namespace hearth::tflite {

// What HASHTABLE_IMPORT puts into a hash table, as the constants of HASHTABLE_FIND: the keys in
// ascending order, each once. Numbers are int64_t; strings are packed (memory/packed_strings.h).
struct HashTable {
  schema::TensorType keyType = schema::TensorType::INT64;
  schema::TensorType valueType = schema::TensorType::STRING;
  size_t count = 0;
  std::vector<uint8_t> keys;
  std::vector<uint8_t> values;
};

// Reads a table from two constants of a subgraph. Of equal keys the first counts, as in TFLite.
// kBadData for tensors that do not exist or differ in length, and for a wrong buffer; kUnsupported
// for values that are no constants, or of types other than one INT64 and one STRING.
Result<HashTable> readHashTable(const FileView& file, const schema::SubGraph& subgraph,
                                int64_t keys, int64_t values);

}  // namespace hearth::tflite
