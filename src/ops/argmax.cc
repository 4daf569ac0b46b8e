// SPDX-License-Identifier: Apache-2.0
// ARGMAX and ARGMIN, and ARGMAX_64 and ARGMIN_64 of hearth.tflite, whose output is TENSOR_INT64.
// Inputs: the tensor and the axis as an INT32 scalar. The first of equal elements wins; NaN never
// wins except at index 0.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

bool isWide(OperationType type) {
  return type == OperationType::kArgmax64 || type == OperationType::kArgmin64;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  return signature.outputType(
      0, isWide(signature.type()) ? OperandType::kTensorInt64 : OperandType::kTensorInt32);
}

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const size_t resolved, resolveAxis(context, axis, context.inputs[0].rank()));
  if (context.inputs[0].dimensions[resolved] == 0)
    return fail(ErrorCode::kBadData, "{} searches dimension {}, which has no element.",
                context.describe(), resolved);
  return resolved;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  Dimensions dimensions = context.inputs[0].dimensions;
  dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(axis));
  return context.setOutputDimensions(0, keepRankAboveZero(context, std::move(dimensions)));
}

// What counts places among neighbours: an integer as wide as the elements, so that no vector has to
// be narrowed or widened.
template <typename T>
using PlaceOf = std::conditional_t<sizeof(T) == 1, uint8_t,
                                   std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;

// The best of `best` and the elements of the row, none of which is NaN.
template <typename T, typename Better>
HEARTH_INLINE inline T bestValue(const T* row, size_t size, T best, Better better) {
  constexpr size_t kLanes = 256 / sizeof(T);
  constexpr size_t kFew = kLanes / 4;
  size_t i = 0;
  if (size >= kFew) {
    T few[kFew];
    for (T& lane : few) lane = best;
    if (size >= kLanes) {
      T lanes[kLanes];
      for (T& lane : lanes) lane = best;
      for (; i + kLanes <= size; i += kLanes)
        for (size_t j = 0; j < kLanes; ++j)
          lanes[j] = better(row[i + j], lanes[j]) ? row[i + j] : lanes[j];
      for (size_t part = 0; part < kLanes; part += kFew)
        for (size_t j = 0; j < kFew; ++j)
          few[j] = better(lanes[part + j], few[j]) ? lanes[part + j] : few[j];
    }
    for (; i + kFew <= size; i += kFew)
      for (size_t j = 0; j < kFew; ++j) few[j] = better(row[i + j], few[j]) ? row[i + j] : few[j];
    for (size_t width = kFew / 2; width > 0; width /= 2)
      for (size_t j = 0; j < width; ++j)
        few[j] = better(few[width + j], few[j]) ? few[width + j] : few[j];
    best = few[0];
  }
  for (; i < size; ++i) best = better(row[i], best) ? row[i] : best;
  return best;
}

// Index of the first element that equals `value`; one does.
template <typename T>
HEARTH_INLINE inline size_t firstEqual(const T* row, size_t size, T value) {
  using Place = PlaceOf<T>;
  constexpr size_t kBlock = 64;
  constexpr Place kNone = 0xFF;
  for (size_t block = 0; block + kBlock <= size; block += kBlock) {
    Place first = kNone;
    for (size_t i = 0; i < kBlock; ++i) {
      const Place place = row[block + i] == value ? static_cast<Place>(i) : kNone;
      first = place < first ? place : first;
    }
    if (first != kNone) return block + first;
  }
  size_t i = size / kBlock * kBlock;
  while (i + 1 < size && !(row[i] == value)) ++i;
  return i;
}

// Index of the first of the best bytes of a row. A byte and its place make one number, whose
// maximum vectorises; higher is better after the bits of kFlip have changed.
template <uint8_t kFlip, typename T>
HEARTH_INLINE inline size_t bestByteOfRow(const T* row, size_t size) {
  constexpr size_t kBlock = 256;
  constexpr size_t kLast = kBlock - 1;
  size_t index = 0;
  unsigned best = 0;
  for (size_t block = 0; block < size; block += kBlock) {
    const T* const first = row + block;
    const auto count = static_cast<uint16_t>(std::min(kBlock, size - block));
    uint16_t most = 0;
    for (uint16_t i = 0; i < count; ++i) {
      const auto number = static_cast<uint16_t>(
          static_cast<uint16_t>(static_cast<uint8_t>(first[i]) ^ kFlip) << 8 | (kLast - i));
      most = number > most ? number : most;
    }
    const unsigned value = most >> 8;
    if (block != 0 && value <= best) continue;
    best = value;
    index = block + kLast - (most & kLast);
  }
  return index;
}

template <typename T, typename Better>
HEARTH_INLINE inline size_t bestOfRow(const T* row, size_t size, Better better) {
  if constexpr (sizeof(T) == 1) {
    constexpr uint8_t kSign = std::is_signed_v<T> ? 0x80 : 0;
    constexpr uint8_t kReverse = std::is_same_v<Better, std::less<T>> ? 0xFF : 0;
    return bestByteOfRow < kSign ^ kReverse > (row, size);
  } else if constexpr (sizeof(T) == 8 || std::is_same_v<T, Half>) {
    size_t index = 0;
    for (size_t i = 1; i < size; ++i)
      if (better(row[i], row[index])) index = i;
    return index;
  } else {
    // Two passes that vectorise are faster than one that carries an index. A NaN in front is
    // handled first: no element is better than it, and it does not equal itself.
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(row[0])) return 0;
    return firstEqual(row, size, bestValue(row, size, row[0], better));
  }
}

// The output, from any element on. Its type is known when it is written only, so that there is one
// search for both.
struct Indices {
  void* data;
  bool areWide;

  Indices from(uint64_t element) const {
    return {areWide ? static_cast<void*>(static_cast<int64_t*>(data) + element)
                    : static_cast<int32_t*>(data) + element,
            areWide};
  }
  void put(uint64_t element, size_t index) const {
    if (areWide)
      static_cast<int64_t*>(data)[element] = static_cast<int64_t>(index);
    else
      static_cast<int32_t*>(data)[element] = static_cast<int32_t>(index);
  }
};

// Searches `size` rows for the best element of each of `count` columns; rows are `stride` apart.
// Places are counted in narrow integers, so some rows are searched at a time.
template <typename T, typename Better>
HEARTH_INLINE inline void searchColumns(const T* source, size_t size, uint64_t stride, size_t count,
                                        const Indices& target, Better better) {
  using Place = PlaceOf<T>;
  constexpr size_t kMostColumns = 256;
  constexpr size_t kMostRows = sizeof(T) == 1 ? 255 : 65535;
  T best[kMostColumns];
  Place places[kMostColumns];  // among the rows at hand, from 1 on; 0 for an earlier one
  uint32_t indices[kMostColumns];
  for (size_t j = 0; j < count; ++j) best[j] = source[j];
  for (size_t j = 0; j < count; ++j) indices[j] = 0;
  for (size_t first = 1; first < size; first += kMostRows) {
    const size_t rows = std::min(kMostRows, size - first);
    for (size_t j = 0; j < count; ++j) places[j] = 0;
    for (size_t i = 0; i < rows; ++i) {
      const T* candidates = source + (first + i) * stride;
      const auto place = static_cast<Place>(i + 1);
      for (size_t j = 0; j < count; ++j) {
        const bool wins = better(candidates[j], best[j]);
        best[j] = wins ? candidates[j] : best[j];
        places[j] = wins ? place : places[j];
      }
    }
    for (size_t j = 0; j < count; ++j)
      indices[j] = places[j] != 0 ? static_cast<uint32_t>(first + places[j] - 1) : indices[j];
  }
  for (size_t j = 0; j < count; ++j) target.put(j, indices[j]);
}

template <typename T, typename Better>
void search(const T* source, uint64_t outer, size_t size, uint64_t inner, Indices target,
            Better better) {
  constexpr uint64_t kColumns = 256;
  onVectorsOf<T>([=]() HEARTH_INLINE {
    if (inner == 1) {
      for (uint64_t o = 0; o < outer; ++o)
        target.put(o, bestOfRow(source + o * size, size, better));
      return;
    }
    for (uint64_t o = 0; o < outer; ++o)
      for (uint64_t j = 0; j < inner; j += kColumns)
        searchColumns(source + o * size * inner + j, size, inner,
                      static_cast<size_t>(std::min(kColumns, inner - j)),
                      target.from(o * inner + j), better);
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  if (context.outputs[0].elementCount() == 0) return {};
  const Tensor& input = context.inputs[0];
  const OperationType type = context.operation->type;
  const bool wantsLargest = type == OperationType::kArgmax || type == OperationType::kArgmax64;
  uint64_t outer = 1;
  uint64_t inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= input.dimensions[i];
  for (size_t i = axis + 1; i < input.rank(); ++i) inner *= input.dimensions[i];
  const size_t size = input.dimensions[axis];
  const bool areWide = isWide(type);
  const Indices target{areWide ? static_cast<void*>(context.outputs[0].as<int64_t>())
                               : context.outputs[0].as<int32_t>(),
                       areWide};
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    const T* source = input.as<T>();
    threads::forRanges(
        context.threadPool, outer, threads::grainOf(size * inner * sizeof(T)),
        [&](uint64_t begin, uint64_t end) {
          const T* first = source + begin * size * inner;
          if (wantsLargest)
            search(first, end - begin, size, inner, target.from(begin * inner), std::greater<T>());
          else
            search(first, end - begin, size, inner, target.from(begin * inner), std::less<T>());
        });
    return {};
  });
}

}  // namespace

const OperationDefinition kArgmaxOperation = {OperationType::kArgmax, validate, prepare, execute};
const OperationDefinition kArgminOperation = {OperationType::kArgmin, validate, prepare, execute};
const OperationDefinition kArgmax64Operation = {OperationType::kArgmax64, validate, prepare,
                                                execute};
const OperationDefinition kArgmin64Operation = {OperationType::kArgmin64, validate, prepare,
                                                execute};

}  // namespace hearth::ops
