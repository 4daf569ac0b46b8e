// SPDX-License-Identifier: Apache-2.0
// ARGMAX and ARGMIN, and ARGMAX_64 and ARGMIN_64 of hearth.tflite, whose output is TENSOR_INT64.
// Inputs: the tensor and the axis as an INT32 scalar. The first of equal elements wins; NaN never
// wins except at index 0.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

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

// The best of `best` and the elements of the row, none of which is NaN.
template <typename T, typename Better>
T bestValue(const T* row, size_t size, T best, Better better) {
  constexpr size_t kLanes = 256 / sizeof(T);
  constexpr size_t kFew = kLanes / 4;
  T* result = &best;
  base::onWidestVectors([=]() HEARTH_INLINE {
    T lanes[kLanes];
    for (T& lane : lanes) lane = *result;
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes)
      for (size_t j = 0; j < kLanes; ++j)
        lanes[j] = better(row[i + j], lanes[j]) ? row[i + j] : lanes[j];
    for (; i + kFew <= size; i += kFew)
      for (size_t j = 0; j < kFew; ++j)
        lanes[j] = better(row[i + j], lanes[j]) ? row[i + j] : lanes[j];
    for (size_t width = kLanes / 2; width > 0; width /= 2)
      for (size_t j = 0; j < width; ++j)
        lanes[j] = better(lanes[width + j], lanes[j]) ? lanes[width + j] : lanes[j];
    T value = lanes[0];
    for (; i < size; ++i) value = better(row[i], value) ? row[i] : value;
    *result = value;
  });
  return best;
}

// Index of the first element that equals `value`; one does.
template <typename T>
size_t firstEqual(const T* row, size_t size, T value) {
  constexpr size_t kBlock = 256 / sizeof(T);
  size_t block = 0;
  for (; block + kBlock <= size; block += kBlock) {
    bool isFound = false;
    bool* found = &isFound;
    const T* first = row + block;
    base::onWidestVectors([=]() HEARTH_INLINE {
      // The mask is as wide as the elements, so that no vector has to be narrowed.
      using Mask = std::conditional_t<sizeof(T) == 1, uint8_t, uint32_t>;
      Mask any = 0;
      for (size_t i = 0; i < kBlock; ++i) any |= first[i] == value ? Mask{1} : Mask{0};
      *found = any != 0;
    });
    if (isFound) break;
  }
  return static_cast<size_t>(std::find(row + block, row + size, value) - row);
}

template <typename T, typename Better>
size_t bestOfRow(const T* row, size_t size, Better better) {
  if constexpr (sizeof(T) == 2 || sizeof(T) == 8) {
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

template <typename T, typename Index, typename Better>
void search(const T* source, uint64_t outer, size_t size, uint64_t inner, Index* target,
            Better better) {
  if (inner == 1) {
    for (uint64_t o = 0; o < outer; ++o)
      target[o] = static_cast<Index>(bestOfRow(source + o * size, size, better));
    return;
  }
  std::vector<T> best(inner);
  for (uint64_t o = 0; o < outer; ++o) {
    std::copy_n(source, inner, best.data());
    std::fill_n(target, inner, Index{0});
    for (size_t i = 1; i < size; ++i) {
      const T* candidates = source + i * inner;
      for (uint64_t j = 0; j < inner; ++j) {
        const bool wins = better(candidates[j], best[j]);
        best[j] = wins ? candidates[j] : best[j];
        target[j] = wins ? static_cast<Index>(i) : target[j];
      }
    }
    source += size * inner;
    target += inner;
  }
}

template <typename Index>
Status searchAs(OperationContext& context, size_t axis) {
  const Tensor& input = context.inputs[0];
  const OperationType type = context.operation->type;
  const bool wantsLargest = type == OperationType::kArgmax || type == OperationType::kArgmax64;
  uint64_t outer = 1;
  uint64_t inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= input.dimensions[i];
  for (size_t i = axis + 1; i < input.rank(); ++i) inner *= input.dimensions[i];
  const size_t size = input.dimensions[axis];
  Index* target = context.outputs[0].as<Index>();
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    const T* source = input.as<T>();
    threads::forRanges(
        context.threadPool, outer, threads::grainOf(size * inner * sizeof(T)),
        [&](uint64_t begin, uint64_t end) {
          const T* first = source + begin * size * inner;
          if (wantsLargest)
            search(first, end - begin, size, inner, target + begin * inner, std::greater<T>());
          else
            search(first, end - begin, size, inner, target + begin * inner, std::less<T>());
        });
    return {};
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  if (context.outputs[0].elementCount() == 0) return {};
  return isWide(context.operation->type) ? searchAs<int64_t>(context, axis)
                                         : searchAs<int32_t>(context, axis);
}

}  // namespace

const OperationDefinition kArgmaxOperation = {OperationType::kArgmax, validate, prepare, execute};
const OperationDefinition kArgminOperation = {OperationType::kArgmin, validate, prepare, execute};
const OperationDefinition kArgmax64Operation = {OperationType::kArgmax64, validate, prepare,
                                                execute};
const OperationDefinition kArgmin64Operation = {OperationType::kArgmin64, validate, prepare,
                                                execute};

}  // namespace hearth::ops
