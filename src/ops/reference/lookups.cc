// SPDX-License-Identifier: Apache-2.0
// Operations that look elements up by index, and those that make tensors from shapes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/element_visitor.h"
#include "ops/int4.h"
#include "ops/output_shape.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

// Bytes of the slice that an index of the first `depth` dimensions selects.
size_t sliceBytes(const Tensor& tensor, size_t depth) {
  size_t bytes = graph::elementSize(tensor.type());
  for (size_t i = depth; i < tensor.rank(); ++i) bytes *= tensor.dimensions[i];
  return bytes;
}

void copySlice(const Tensor& from, int64_t fromSlice, const Tensor& to, int64_t toSlice,
               size_t bytes) {
  std::memcpy(to.as<uint8_t>() + static_cast<size_t>(toSlice) * bytes,
              from.as<uint8_t>() + static_cast<size_t>(fromSlice) * bytes, bytes);
}

Status checkIndex(const OperationContext& context, size_t number, int64_t index, int64_t size) {
  if (index >= 0 && index < size) return {};
  return fail(ErrorCode::kBadData, "Index {} of {} is {}, there are {} elements.", number,
              context.describe(), index, size);
}

// Number of runs of indices in a tensor of [..., depth].
int64_t runsOf(const Dimensions& indices) {
  int64_t runs = 1;
  for (size_t i = 0; i + 1 < indices.size(); ++i) runs *= indices[i];
  return runs;
}

// The number of the slice that one run of indices selects.
Result<int64_t> sliceAt(const OperationContext& context, const std::vector<int64_t>& indices,
                        size_t first, size_t depth, const Dimensions& dimensions) {
  int64_t slice = 0;
  for (size_t i = 0; i < depth; ++i) {
    HEARTH_TRY(checkIndex(context, first + i, indices[first + i], dimensions[i]));
    slice = slice * dimensions[i] + indices[first + i];
  }
  return slice;
}

void putNumbers(const Tensor& output, const Dimensions& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    putInteger(output, static_cast<int64_t>(i), numbers[i]);
}

// Whether two elements are equal: real elements as numbers (NaN equals nothing), others by bytes.
bool areEqual(const Tensor& tensor, int64_t a, int64_t b) {
  if (isFloat(tensor.type())) return realAt(tensor, a) == realAt(tensor, b);
  const size_t size = graph::elementSize(tensor.type());
  return std::memcmp(tensor.as<uint8_t>() + static_cast<size_t>(a) * size,
                     tensor.as<uint8_t>() + static_cast<size_t>(b) * size, size) == 0;
}

}  // namespace

Status gather(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(2));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.rank()));
  for (size_t i = 0; i < indices.size(); ++i)
    HEARTH_TRY(checkIndex(context, i, indices[i], data.dimensions[axis]));
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  const size_t bytes = sliceBytes(data, axis + 1);
  // Data and indices may share their first dimensions.
  HEARTH_ASSIGN(const int32_t shared, context.scalar<int32_t>(3, 0));
  const size_t batchRank = static_cast<size_t>(
      shared < 0 ? shared + static_cast<int32_t>(context.inputs[2].rank()) : shared);
  size_t batches = 1;
  int64_t outer = 1;
  for (size_t i = 0; i < batchRank; ++i) batches *= data.dimensions[i];
  for (size_t i = batchRank; i < axis; ++i) outer *= data.dimensions[i];
  const size_t count = indices.size() / batches;
  int64_t slice = 0;
  int64_t block = 0;
  for (size_t batch = 0; batch < batches; ++batch)
    for (int64_t o = 0; o < outer; ++o, ++block)
      for (size_t i = 0; i < count; ++i)
        copySlice(data, block * data.dimensions[axis] + indices[batch * count + i],
                  context.outputs[0], slice++, bytes);
  return {};
}

Status gatherNd(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(1));
  const Dimensions& shape = context.inputs[1].dimensions;
  const size_t depth = shape.back();
  const size_t bytes = sliceBytes(data, depth);
  const int64_t count = runsOf(shape);
  for (int64_t s = 0; s < count; ++s) {
    HEARTH_ASSIGN(const int64_t slice, sliceAt(context, indices, static_cast<size_t>(s) * depth,
                                               depth, data.dimensions));
    copySlice(data, slice, context.outputs[0], s, bytes);
  }
  return {};
}

// Updates at one place are added; integers keep their lower bits.
Status scatterNd(const OperationContext& context) {
  const Tensor& updates = context.inputs[1];
  const Tensor& output = context.outputs[0];
  std::memset(output.data, 0,
              static_cast<size_t>(countOf(output.dimensions)) * graph::elementSize(output.type()));
  if (countOf(updates.dimensions) == 0) return {};
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(0));
  const Dimensions& shape = context.inputs[0].dimensions;
  const size_t depth = shape.back();
  const int64_t count = runsOf(shape);
  const int64_t size = countOf(updates.dimensions) / count;
  for (int64_t s = 0; s < count; ++s)
    HEARTH_TRY(sliceAt(context, indices, static_cast<size_t>(s) * depth, depth, output.dimensions));
  return visitElementType(output.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    for (int64_t s = 0; s < count; ++s) {
      HEARTH_ASSIGN(const int64_t slice, sliceAt(context, indices, static_cast<size_t>(s) * depth,
                                                 depth, output.dimensions));
      for (int64_t i = 0; i < size; ++i) {
        const T sum = loadAs<T>(output, slice * size + i);
        const T update = loadAs<T>(updates, s * size + i);
        if constexpr (std::is_integral_v<T>)
          storeAs<T>(output, slice * size + i,
                     static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(update)));
        else
          storeAs<T>(output, slice * size + i, sum + update);
      }
    }
    return {};
  });
}

// Fills the output with one value, then sets the places that the indices name.
Status setPlaces(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const Tensor& values = context.inputs[2];
  for (int64_t i = 0; i < countOf(output.dimensions); ++i)
    copyElement(context.inputs[3], 0, output, i);
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(0));
  const size_t depth = output.rank();
  for (size_t first = 0; first < indices.size(); first += depth) {
    HEARTH_ASSIGN(const int64_t place, sliceAt(context, indices, first, depth, output.dimensions));
    copyElement(values, values.rank() == 0 ? 0 : static_cast<int64_t>(first / depth), output,
                place);
  }
  return {};
}

// The rows are real numbers where the output is float32, else rows as they are stored.
Status lookUpEmbeddings(const OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> rows, context.intVector(0));
  const Tensor& table = context.inputs[1];
  const Tensor& output = context.outputs[0];
  for (size_t i = 0; i < rows.size(); ++i)
    HEARTH_TRY(checkIndex(context, i, rows[i], table.dimensions[0]));
  if (countOf(output.dimensions) == 0) return {};
  if (table.type() == output.type()) {
    for (size_t i = 0; i < rows.size(); ++i)
      copySlice(table, rows[i], output, static_cast<int64_t>(i), sliceBytes(table, 1));
    return {};
  }
  const int64_t size = countOf(table.dimensions) / table.dimensions[0];
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t k = 0; k < size; ++k) {
      const int64_t place = rows[i] * size + k;
      double value = 0;
      if (context.hasInput(2)) {
        // There is a scale for each run of elements.
        const Tensor& scales = context.inputs[2];
        const int64_t blocks = scales.dimensions[1];
        value = storedAt(table, place) * realAt(scales, rows[i] * blocks + k / (size / blocks));
      } else {
        value = realAt(table, place);
      }
      putReal(output, static_cast<int64_t>(i) * size + k, value);
    }
  return {};
}

// Keys are in ascending order. A missing key gives a row of zeros.
Status lookUpHashtable(const OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> wanted, context.intVector(0));
  HEARTH_ASSIGN(const std::vector<int64_t> keys, context.intVector(1));
  const Tensor& table = context.inputs[2];
  const size_t bytes = sliceBytes(table, 1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::lower_bound(keys.begin(), keys.end(), wanted[i]);
    const bool isHit = found != keys.end() && *found == wanted[i];
    if (context.hasOutput(1)) context.outputs[1].as<uint8_t>()[i] = isHit ? 1 : 0;
    if (!context.hasOutput(0)) continue;
    if (isHit)
      copySlice(table, found - keys.begin(), context.outputs[0], static_cast<int64_t>(i), bytes);
    else
      std::memset(context.outputs[0].as<uint8_t>() + i * bytes, 0, bytes);
  }
  return {};
}

Status encodeOneHot(const OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(0));
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(4));
  const Tensor& output = context.outputs[0];
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, output.rank()));
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    from.erase(from.begin() + static_cast<ptrdiff_t>(axis));
    const int64_t one = indices[static_cast<size_t>(placeOf(from, context.inputs[0].dimensions))];
    copyElement(context.inputs[index[axis] == one ? 2 : 3], 0, output, place);
  });
  return {};
}

Status findNonZeros(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  int64_t* target = context.outputs[0].as<int64_t>();
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    forEach(data.dimensions, [&](const Index& index, int64_t place) {
      if (loadAs<T>(data, place) != static_cast<T>(0))
        target = std::copy(index.begin(), index.end(), target);
    });
    return {};
  });
}

Status makeRange(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  for (int64_t i = 0; i < countOf(output.dimensions); ++i) {
    if (isInteger(output.type()))
      // The results fit their type, but i * delta may not.
      putInteger(output, i,
                 static_cast<int64_t>(static_cast<uint64_t>(integerAt(context.inputs[0], 0)) +
                                      static_cast<uint64_t>(i) *
                                          static_cast<uint64_t>(integerAt(context.inputs[2], 0))));
    else
      putReal(output, i,
              realAt(context.inputs[0], 0) + static_cast<double>(i) * realAt(context.inputs[2], 0));
  }
  return {};
}

Status fill(const OperationContext& context) {
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions); ++i)
    copyElement(context.inputs[1], 0, context.outputs[0], i);
  return {};
}

Status fillWithZeros(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  std::memset(output.data, 0,
              static_cast<size_t>(countOf(output.dimensions)) * graph::elementSize(output.type()));
  return {};
}

Status findBuckets(const OperationContext& context) {
  const Tensor& boundaries = context.inputs[1];
  const int64_t count = countOf(boundaries.dimensions);
  for (int64_t i = 0; i < count; ++i) {
    const bool isAfter = i == 0 || realAt(boundaries, i) >= realAt(boundaries, i - 1);
    if (std::isnan(realAt(boundaries, i)) || !isAfter)
      return fail(ErrorCode::kBadData, "The boundaries of {} are in no order.", context.describe());
  }
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions); ++i) {
    int32_t below = 0;
    for (int64_t b = 0; b < count; ++b)
      below += realAt(context.inputs[0], i) < realAt(boundaries, b) ? 0 : 1;
    putInteger(context.outputs[0], i, below);
  }
  return {};
}

// Searches for each element among the elements before it.
Status findUnique(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  int64_t different = 0;
  for (int64_t i = 0; i < countOf(data.dimensions); ++i) {
    int64_t found = -1;
    for (int64_t j = 0; j < i && found < 0; ++j)
      if (areEqual(data, i, j)) found = integerAt(context.outputs[1], j);
    if (found < 0) {
      copyElement(data, i, context.outputs[0], different);
      found = different++;
    }
    putInteger(context.outputs[1], i, found);
  }
  return {};
}

Status findRank(const OperationContext& context) {
  putInteger(context.outputs[0], 0, static_cast<int64_t>(context.inputs[0].rank()));
  return {};
}

Status findShape(const OperationContext& context) {
  putNumbers(context.outputs[0], context.inputs[0].dimensions);
  return {};
}

Status broadcastArguments(const OperationContext& context) {
  Dimensions shapes[2];
  for (size_t input = 0; input < 2; ++input) {
    HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(input));
    for (const int64_t value : sizes) {
      HEARTH_ASSIGN(const uint32_t size, toDimension(context, value));
      shapes[input].push_back(size);
    }
  }
  HEARTH_ASSIGN(const Dimensions both, broadcastShapes(context, shapes[0], shapes[1]));
  putNumbers(context.outputs[0], both);
  return {};
}

// UNSORTED_SEGMENT_*: searches all rows for each result.
Status combineSegments(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const OperationType type = context.operation->type;
  HEARTH_ASSIGN(const std::vector<int64_t> numbers, context.intVector(1));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] >= 0) HEARTH_TRY(checkIndex(context, i, numbers[i], output.dimensions[0]));
  if (countOf(output.dimensions) == 0) return {};
  const int64_t row = countOf(output.dimensions) / output.dimensions[0];
  return visitElementType(output.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    using Limits = std::numeric_limits<T>;
    for (int64_t place = 0; place < countOf(output.dimensions); ++place) {
      T result = 0;
      if (type == OperationType::kUnsortedSegmentProd) result = 1;
      if (type == OperationType::kUnsortedSegmentMax) result = Limits::lowest();
      if (type == OperationType::kUnsortedSegmentMin) result = Limits::max();
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] != place / row) continue;
        const T value = loadAs<T>(data, static_cast<int64_t>(i) * row + place % row);
        if (type == OperationType::kUnsortedSegmentMax) {
          if (result < value) result = value;
        } else if (type == OperationType::kUnsortedSegmentMin) {
          if (value < result) result = value;
        } else if constexpr (std::is_integral_v<T>) {
          // Computed in 64 bits, of which the lower ones are kept.
          const auto a = static_cast<uint64_t>(result);
          const auto b = static_cast<uint64_t>(value);
          result = static_cast<T>(type == OperationType::kUnsortedSegmentProd ? a * b : a + b);
        } else {
          result = static_cast<T>(type == OperationType::kUnsortedSegmentProd ? result * value
                                                                              : result + value);
        }
      }
      storeAs<T>(output, place, result);
    }
    return {};
  });
}

}  // namespace hearth::ops::reference
