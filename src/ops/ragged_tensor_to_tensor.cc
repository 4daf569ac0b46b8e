// SPDX-License-Identifier: Apache-2.0
// RAGGED_TENSOR_TO_TENSOR of the extension, TensorFlow's operator RaggedTensorToTensor: the rows of
// a ragged tensor as a tensor, cut or padded to one length. Inputs: what each partition holds, a
// constant TENSOR_INT32 of RowPartition; the wanted shape, where -1 is the length of the longest
// row, of rank 0 if nothing is wanted; the values, one behind the other; the value of the padding,
// one element; and the partitions, from the outermost dimension on. Shape and partitions are
// TENSOR_INT32 or TENSOR_INT64.
#include "ops/ragged_tensor_to_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kKinds = 0;
constexpr size_t kShape = 1;
constexpr size_t kRaggedValues = 2;
constexpr size_t kPadding = 3;
constexpr size_t kFirstPartition = 4;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kFirstPartition + 1, kFirstPartition + kMaximumRank, 1));
  HEARTH_TRY(signature.inputTensor(kKinds, OperandType::kTensorInt32, 1, 1));
  HEARTH_TRY(signature.inputTensor(kShape, kIndexTensors, 0, 1));
  HEARTH_TRY(signature.inputTensor(kRaggedValues, kMovedTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputTypeLike(kPadding, kRaggedValues));
  for (size_t i = kFirstPartition; i < signature.inputCount(); ++i)
    HEARTH_TRY(signature.inputTensor(i, kIndexTensors, 0, 1));
  return signature.outputLike(0, kRaggedValues);
}

std::vector<int64_t> integersOf(const Tensor& tensor) {
  std::vector<int64_t> values(tensor.elementCount());
  if (tensor.type() == OperandType::kTensorInt64)
    std::copy_n(tensor.as<int64_t>(), values.size(), values.begin());
  else
    std::copy_n(tensor.as<int32_t>(), values.size(), values.begin());
  return values;
}

// The rows of one dimension: where each element of the next one belongs.
struct Rows {
  std::vector<std::pair<int64_t, int64_t>> elements;  // row and place in the row
  int64_t longest = 0;

  void append(int64_t row, int64_t place) {
    elements.emplace_back(row, place);
    longest = std::max(longest, place + 1);
  }
};

// `expected` elements in `count` rows.
Result<Rows> readSplits(const OperationContext& context, const std::vector<int64_t>& splits,
                        int64_t count, int64_t expected) {
  if (static_cast<int64_t>(splits.size()) - 1 != count || splits.front() != 0 ||
      splits.back() != expected)
    return fail(ErrorCode::kBadData,
                "{} has {} row splits for {} rows of {} elements in all; they must be one more, "
                "from 0 to that number.",
                context.describe(), splits.size(), count, expected);
  Rows rows;
  for (int64_t row = 0; row < count; ++row) {
    if (splits[row] > splits[row + 1] || splits[row + 1] > expected)
      return fail(ErrorCode::kBadData, "Row {} of {} has the elements [{}, {}) of {}.", row,
                  context.describe(), splits[row], splits[row + 1], expected);
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) rows.append(row, i - splits[row]);
  }
  return rows;
}

Result<Rows> readRowIds(const OperationContext& context, const std::vector<int64_t>& ids,
                        int64_t count) {
  Rows rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= count || (i != 0 && ids[i] < ids[i - 1]))
      return fail(ErrorCode::kBadData,
                  "Element {} of {} belongs to row {} of {}; rows must be in ascending order.", i,
                  context.describe(), ids[i], count);
    const bool isFirst = i == 0 || ids[i] != ids[i - 1];
    rows.append(ids[i], isFirst ? 0 : rows.elements.back().second + 1);
  }
  return rows;
}

// The partitions of an operation.
struct Partitions {
  std::vector<RowPartition> kinds;  // of `lists`
  std::vector<std::vector<int64_t>> lists;
  int64_t rowCount = 0;  // of the outermost dimension
};

Result<Partitions> readPartitions(const OperationContext& context) {
  Partitions partitions;
  for (const int64_t kind : integersOf(context.inputs[kKinds]))
    partitions.kinds.push_back(static_cast<RowPartition>(kind));
  for (size_t i = kFirstPartition; i < context.inputs.size(); ++i)
    partitions.lists.push_back(integersOf(context.inputs[i]));
  if (partitions.kinds.size() != partitions.lists.size())
    return fail(ErrorCode::kBadData, "{} has {} kinds for {} partitions.", context.describe(),
                partitions.kinds.size(), partitions.lists.size());
  const bool hasSize = partitions.kinds.front() == RowPartition::kFirstDimension;
  if (partitions.lists.front().empty() ||
      (!hasSize && partitions.kinds.front() != RowPartition::kRowSplits))
    return fail(ErrorCode::kBadData, "{} does not say how many rows there are.",
                context.describe());
  partitions.rowCount = hasSize ? partitions.lists.front().front()
                                : static_cast<int64_t>(partitions.lists.front().size()) - 1;
  HEARTH_TRY(toDimension(context, partitions.rowCount));
  if (hasSize) {
    partitions.kinds.erase(partitions.kinds.begin());
    partitions.lists.erase(partitions.lists.begin());
  }
  if (!partitions.lists.empty()) return partitions;
  return fail(ErrorCode::kBadData, "{} has no ragged dimension.", context.describe());
}

Result<std::vector<Rows>> readRows(const OperationContext& context, const Partitions& partitions) {
  std::vector<Rows> levels;
  int64_t count = partitions.rowCount;
  for (size_t i = 0; i < partitions.lists.size(); ++i) {
    const std::vector<int64_t>& list = partitions.lists[i];
    const bool isLast = i + 1 == partitions.lists.size();
    if (partitions.kinds[i] == RowPartition::kRowIds) {
      HEARTH_ASSIGN(Rows rows, readRowIds(context, list, count));
      levels.push_back(std::move(rows));
    } else if (partitions.kinds[i] == RowPartition::kRowSplits) {
      // A list bounds the number of elements, so that a split costs no memory of its own.
      if (!isLast && partitions.kinds[i + 1] != RowPartition::kRowSplits)
        return fail(ErrorCode::kUnsupported,
                    "{} has row splits before the rows of elements, which is not supported.",
                    context.describe());
      const int64_t expected = isLast ? int64_t{context.inputs[kRaggedValues].dimensions[0]}
                                      : static_cast<int64_t>(partitions.lists[i + 1].size()) - 1;
      HEARTH_ASSIGN(Rows rows, readSplits(context, list, count, expected));
      levels.push_back(std::move(rows));
    } else {
      return fail(ErrorCode::kBadData, "Partition {} of {} is of the kind {}.", i,
                  context.describe(), static_cast<int32_t>(partitions.kinds[i]));
    }
    count = static_cast<int64_t>(levels.back().elements.size());
  }
  if (count == context.inputs[kRaggedValues].dimensions[0]) return levels;
  return fail(ErrorCode::kBadData, "The partitions of {} have {} values, {} are there.",
              context.describe(), count, context.inputs[kRaggedValues].dimensions[0]);
}

// The output's shape: what is wanted, else as many rows, and rows as long, as there are.
Result<Dimensions> findShape(const OperationContext& context, int64_t rowCount,
                             const std::vector<Rows>& levels) {
  const Tensor& values = context.inputs[kRaggedValues];
  const size_t rank = levels.size() + values.rank();
  std::vector<int64_t> wanted(rank, -1);
  if (context.inputs[kShape].rank() != 0) wanted = integersOf(context.inputs[kShape]);
  if (wanted.size() != rank)
    return fail(ErrorCode::kBadData, "{} wants rank {} of a tensor of rank {}.", context.describe(),
                wanted.size(), rank);
  Dimensions shape;
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t there = i == 0               ? rowCount
                          : i <= levels.size() ? levels[i - 1].longest
                                               : values.dimensions[i - levels.size()];
    if (wanted[i] >= 0 && i > levels.size() && wanted[i] != there)
      return fail(ErrorCode::kBadData, "{} wants dimension {} to be {}, that of the values is {}.",
                  context.describe(), i, wanted[i], there);
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, wanted[i] < 0 ? there : wanted[i]));
    shape.push_back(size);
    if (__builtin_mul_overflow(count, uint64_t{std::max(size, 1u)}, &count) ||
        count > (uint64_t{1} << 62))
      return fail(ErrorCode::kBadData, "{} makes {}, which is too large.", context.describe(),
                  graph::describeDimensions(shape));
  }
  return shape;
}

// Where a value that was cut off goes.
constexpr int64_t kNowhere = -1;

// For each value the row of the output that it fills. A row is what is behind the ragged
// dimensions.
std::vector<int64_t> findPlaces(const std::vector<Rows>& levels, const Dimensions& shape) {
  std::vector<int64_t> places;
  for (size_t level = 0; level < levels.size(); ++level) {
    std::vector<int64_t> next;
    next.reserve(levels[level].elements.size());
    for (const auto& [row, place] : levels[level].elements) {
      const int64_t outer = level != 0 ? places[row] : row < int64_t{shape[0]} ? row : kNowhere;
      const int64_t length = shape[level + 1];
      next.push_back(outer == kNowhere || place >= length ? kNowhere : outer * length + place);
    }
    places = std::move(next);
  }
  return places;
}

struct Layout {
  std::vector<Rows> levels;
  Dimensions shape;
};

Result<Layout> findLayout(const OperationContext& context) {
  HEARTH_ASSIGN(const Partitions partitions, readPartitions(context));
  Layout layout;
  HEARTH_ASSIGN(layout.levels, readRows(context, partitions));
  HEARTH_ASSIGN(layout.shape, findShape(context, partitions.rowCount, layout.levels));
  return layout;
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, context.inputs.size(), 1));
  HEARTH_TRY(requireRank(context, kRaggedValues, 1, kMaximumRank));
  HEARTH_TRY(requireOneElement(context, kPadding));
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const bool isRead = i != kRaggedValues && i != kPadding;
    if (isRead && context.inputs[i].data == nullptr) return needsRuntimeValue(context, i);
  }
  HEARTH_ASSIGN(Layout layout, findLayout(context));
  return context.setOutputDimensions(0, std::move(layout.shape));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Layout layout, findLayout(context));
  const Tensor& output = context.outputs[0];
  // Another thread may have written to the memory of an input since the output was allocated.
  if (layout.shape != output.dimensions)
    return fail(ErrorCode::kOpFailed, "The partitions of {} changed during the run.",
                context.describe());
  const Tensor& values = context.inputs[kRaggedValues];
  const size_t element = graph::elementSize(values.type());
  auto* const target = output.as<uint8_t>();
  for (uint64_t i = 0; i < output.elementCount(); ++i)
    std::memcpy(target + i * element, context.inputs[kPadding].data, element);
  uint64_t bytes = element;  // of a row
  for (size_t i = 1; i < values.rank(); ++i) bytes *= values.dimensions[i];
  const std::vector<int64_t> places = findPlaces(layout.levels, layout.shape);
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != kNowhere)
      std::memcpy(target + static_cast<uint64_t>(places[i]) * bytes,
                  values.as<const uint8_t>() + i * bytes, bytes);
  return {};
}

}  // namespace

const OperationDefinition kRaggedTensorToTensorOperation = {OperationType::kRaggedTensorToTensor,
                                                            validate, prepare, execute};

}  // namespace hearth::ops
