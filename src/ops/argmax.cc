// SPDX-License-Identifier: Apache-2.0
// ARGMAX and ARGMIN, and ARGMAX_64 and ARGMIN_64 of hearth.tflite, whose output is TENSOR_INT64.
// Inputs: the tensor and the axis as an INT32 scalar. The first of equal elements wins; NaN never
// wins except at index 0.
#include <algorithm>
#include <functional>
#include <vector>

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

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, kMovableTensors));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  return signature.outputType(
      0, isWide(operation.type) ? OperandType::kTensorInt64 : OperandType::kTensorInt32);
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

template <typename T, typename Better>
size_t bestOfRow(const T* row, size_t size, Better better) {
  if constexpr (sizeof(T) == 1) {
    // Two passes that vectorise are faster than one that carries an index.
    T best = row[0];
    for (size_t i = 1; i < size; ++i) best = better(row[i], best) ? row[i] : best;
    return static_cast<size_t>(std::find(row, row + size, best) - row);
  } else {
    size_t index = 0;
    for (size_t i = 1; i < size; ++i)
      if (better(row[i], row[index])) index = i;
    return index;
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
