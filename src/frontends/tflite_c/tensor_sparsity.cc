// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/tensor_sparsity.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "frontends/tflite_c/tensor_table.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite_c {
namespace {

namespace schema = tflite::schema;

template <typename List>
TfLiteIntArray* listOf(const List* list) {
  if (list == nullptr) return tflite_abi::makeIntArray({});
  return tflite_abi::makeIntArray(std::vector<int32_t>(list->begin(), list->end()));
}

// Indices have the narrowest of three types.
TfLiteIntArray* indicesOf(const void* table, schema::SparseIndexVector type) {
  if (table == nullptr) return tflite_abi::makeIntArray({});
  switch (type) {
    case schema::SparseIndexVector::Int32Vector:
      return listOf(static_cast<const schema::Int32Vector*>(table)->values());
    case schema::SparseIndexVector::Uint16Vector:
      return listOf(static_cast<const schema::Uint16Vector*>(table)->values());
    case schema::SparseIndexVector::Uint8Vector:
      return listOf(static_cast<const schema::Uint8Vector*>(table)->values());
    default:
      return tflite_abi::makeIntArray({});
  }
}

struct FreeSparsity {
  void operator()(TfLiteSparsity* sparsity) const { TfLiteSparsityFree(sparsity); }
};

template <typename T>
T* zeroed(size_t count) {
  void* const memory = std::calloc(std::max<size_t>(count, 1), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace

TfLiteSparsity* makeSparsity(const schema::SparsityParameters& source) {
  std::unique_ptr<TfLiteSparsity, FreeSparsity> made(zeroed<TfLiteSparsity>(1));
  made->traversal_order = listOf(source.traversal_order());
  made->block_map = listOf(source.block_map());
  const auto* const dimensions = source.dim_metadata();
  const uint32_t count = dimensions == nullptr ? 0 : dimensions->size();
  made->dim_metadata = zeroed<TfLiteDimensionMetadata>(count);
  made->dim_metadata_size = static_cast<int32_t>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const schema::DimensionMetadata& dimension = *dimensions->Get(i);
    TfLiteDimensionMetadata& read = made->dim_metadata[i];
    read.format = static_cast<int32_t>(dimension.format());
    read.dense_size = dimension.dense_size();
    read.array_segments = indicesOf(dimension.array_segments(), dimension.array_segments_type());
    read.array_indices = indicesOf(dimension.array_indices(), dimension.array_indices_type());
  }
  return made.release();
}

}  // namespace hearth::tflite_c
