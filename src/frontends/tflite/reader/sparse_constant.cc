// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/sparse_constant.h"

#include <algorithm>
#include <utility>

namespace hearth::tflite {
namespace {

// One level of the traversal: a dimension of the tensor, counted in blocks, or a dimension of the
// block.
struct Level {
  size_t dimension = 0;  // of the tensor
  uint64_t size = 0;
  uint64_t stride = 0;  // elements of the dimension that one step moves
  bool isSparse = false;
  std::vector<uint64_t> segments;
  std::vector<uint64_t> indices;
};

template <typename Vector>
std::vector<uint64_t> widen(const void* table) {
  const auto* const vector = static_cast<const Vector*>(table);
  std::vector<uint64_t> values;
  if (vector == nullptr || vector->values() == nullptr) return values;
  // A negative number becomes one beyond any dimension.
  for (const auto value : *vector->values()) values.push_back(static_cast<uint64_t>(value));
  return values;
}

// The numbers of a union, which holds `table`.
std::vector<uint64_t> numbersOf(schema::SparseIndexVector type, const void* table) {
  switch (type) {
    case schema::SparseIndexVector::Int32Vector:
      return widen<schema::Int32Vector>(table);
    case schema::SparseIndexVector::Uint16Vector:
      return widen<schema::Uint16Vector>(table);
    case schema::SparseIndexVector::Uint8Vector:
      return widen<schema::Uint8Vector>(table);
    default:
      return {};
  }
}

std::unexpected<Error> broken(const char* what) {
  return fail(ErrorCode::kBadData, "Its sparse constant is wrong: {}.", what);
}

// Levels in the order of traversal.
Result<std::vector<Level>> readLevels(const schema::SparsityParameters& sparsity,
                                      const graph::Dimensions& dimensions) {
  const auto* order = sparsity.traversal_order();
  const auto* metadata = sparsity.dim_metadata();
  const auto* blocks = sparsity.block_map();
  const size_t rank = dimensions.size();
  const size_t blockCount = blocks == nullptr ? 0 : blocks->size();
  if (order == nullptr || metadata == nullptr || blockCount > rank ||
      order->size() != rank + blockCount || metadata->size() != order->size())
    return broken("its dimensions and their order differ in number");

  std::vector<uint64_t> blockSizes(rank, 1);
  std::vector<bool> isSeen(order->size(), false);
  for (uint32_t i = 0; i < order->size(); ++i) {
    const int64_t place = order->Get(i);
    if (place < 0 || place >= static_cast<int64_t>(order->size()) || isSeen[place])
      return broken("the order names a dimension that does not exist, or twice");
    isSeen[place] = true;
    if (place < static_cast<int64_t>(rank)) continue;
    const int64_t target = blocks->Get(static_cast<uint32_t>(place - rank));
    const int64_t size = metadata->Get(i)->dense_size();
    if (target < 0 || target >= static_cast<int64_t>(rank) || size <= 0 ||
        blockSizes[target] != 1 || metadata->Get(i)->format() != schema::DimensionType::DENSE ||
        dimensions[target] % size != 0)
      return broken("a block does not fit its dimension");
    blockSizes[target] = static_cast<uint64_t>(size);
  }
  std::vector<Level> levels;
  for (uint32_t i = 0; i < order->size(); ++i) {
    const schema::DimensionMetadata& source = *metadata->Get(i);
    const size_t place = static_cast<size_t>(order->Get(i));
    Level level;
    if (place < rank) {
      level.dimension = place;
      level.size = dimensions[place] / blockSizes[place];
      level.stride = blockSizes[place];
    } else {
      level.dimension = static_cast<size_t>(blocks->Get(static_cast<uint32_t>(place - rank)));
      level.size = blockSizes[level.dimension];
      level.stride = 1;
    }
    level.isSparse = source.format() == schema::DimensionType::SPARSE_CSR;
    if (level.isSparse) {
      level.segments = numbersOf(source.array_segments_type(), source.array_segments());
      level.indices = numbersOf(source.array_indices_type(), source.array_indices());
    } else if (source.dense_size() < 0 ||
               static_cast<uint64_t>(source.dense_size()) != level.size) {
      return broken("the size of a stored dimension is not that of the tensor");
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

class Densifier {
 public:
  Densifier(const std::vector<Level>& levels, const graph::Dimensions& dimensions,
            size_t elementSize, std::span<const uint8_t> values)
      : levels_(levels), elementSize_(elementSize), values_(values) {
    strides_.assign(dimensions.size(), 1);
    for (size_t i = dimensions.size(); i-- > 1;) strides_[i - 1] = strides_[i] * dimensions[i];
    dense_.resize(strides_[0] * dimensions[0] * elementSize);
  }

  Result<std::vector<uint8_t>> run() {
    HEARTH_TRY(visit(0, 0, 0));
    return std::move(dense_);
  }

 private:
  // `position` counts the stored entries of the levels above; `element` is the element of the
  // tensor that their coordinates select.
  Status visit(size_t depth, uint64_t position, uint64_t element) {
    if (depth == levels_.size()) {
      const uint64_t from = position * elementSize_;
      if (from + elementSize_ > values_.size()) return broken("it has too few values");
      std::copy_n(values_.data() + from, elementSize_, dense_.data() + element * elementSize_);
      return {};
    }
    const Level& level = levels_[depth];
    const uint64_t step = level.stride * strides_[level.dimension];
    if (!level.isSparse) {
      for (uint64_t i = 0; i < level.size; ++i)
        HEARTH_TRY(visit(depth + 1, position * level.size + i, element + i * step));
      return {};
    }
    if (position + 1 >= level.segments.size()) return broken("it has too few segments");
    const uint64_t end = level.segments[position + 1];
    // Indices must rise, which keeps the work below the dense size.
    uint64_t next = 0;
    for (uint64_t i = level.segments[position]; i < end; ++i) {
      if (i >= level.indices.size() || level.indices[i] < next || level.indices[i] >= level.size)
        return broken("an index is missing, out of order or outside its dimension");
      next = level.indices[i] + 1;
      HEARTH_TRY(visit(depth + 1, i, element + level.indices[i] * step));
    }
    return {};
  }

  const std::vector<Level>& levels_;
  const size_t elementSize_;
  const std::span<const uint8_t> values_;
  std::vector<uint64_t> strides_;
  std::vector<uint8_t> dense_;
};

}  // namespace

Result<std::vector<uint8_t>> densify(const schema::SparsityParameters& sparsity,
                                     const graph::Dimensions& dimensions, size_t elementSize,
                                     std::span<const uint8_t> values) {
  if (elementSize == 0 || dimensions.empty())
    return fail(ErrorCode::kUnsupported,
                "Its sparse constant has a type or rank without elements.");
  HEARTH_ASSIGN(const std::vector<Level> levels, readLevels(sparsity, dimensions));
  return Densifier(levels, dimensions, elementSize, values).run();
}

}  // namespace hearth::tflite
