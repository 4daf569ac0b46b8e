// SPDX-License-Identifier: Apache-2.0
// CUMSUM of the extension: running sums along an axis. Inputs: data, INT32 axis, BOOL exclusive
// (the element itself is left out), BOOL reverse (from the end).
#include <algorithm>
#include <type_traits>
#include <vector>

#include "ops/axis_rows.h"
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kSummable = OperandType::kTensorFloat32 | OperandType::kTensorFloat64 |
                              OperandType::kTensorInt32 | OperandType::kTensorInt64;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputTensor(0, kSummable, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  for (const size_t i : {2, 3}) HEARTH_TRY(signature.inputType(i, OperandType::kBool));
  return signature.outputTypeLike(0, 0);
}

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  return resolveAxis(context, axis, context.inputs[0].rank());
}

// Integers wrap.
template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}

template <typename T>
void sumRow(const T* input, T* output, size_t size, bool isExclusive, bool isReverse) {
  T total = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t at = isReverse ? size - 1 - i : i;
    const T next = sum(total, input[at]);
    output[at] = isExclusive ? total : next;
    total = next;
  }
}

// Adds a row to the totals and writes the totals: from before the addition if exclusive, else from
// after it.
template <typename T>
void addRow(const T* input, T* totals, T* output, size_t count, bool isExclusive) {
  if (isExclusive) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const T next = sum(totals[i], input[i]);
      output[i] = totals[i];
      totals[i] = next;
    }
    return;
  }
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    const T next = sum(totals[i], input[i]);
    output[i] = next;
    totals[i] = next;
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  HEARTH_ASSIGN(const bool isExclusive, context.scalar<bool>(2));
  HEARTH_ASSIGN(const bool isReverse, context.scalar<bool>(3));
  return visitElementType(
      context.inputs[0].type(), [&]<typename T>(std::type_identity<T>) -> Status {
        const T* input = context.inputs[0].as<T>();
        T* output = context.outputs[0].as<T>();
        const AxisBlocks blocks(context.inputs[0].dimensions, axis);
        if (blocks.size == 0 || blocks.inner == 0) return {};
        // Takes one row of neighbours at a time; their running sums are a row as well.
        threads::forRanges(context.threadPool, blocks.outer,
                           threads::grainOf(blocks.size * blocks.inner * sizeof(T)),
                           [&](uint64_t begin, uint64_t end) {
                             std::vector<T> totals(blocks.inner);
                             for (uint64_t o = begin; o < end; ++o) {
                               if (blocks.inner == 1) {
                                 sumRow(input + o * blocks.size, output + o * blocks.size,
                                        blocks.size, isExclusive, isReverse);
                                 continue;
                               }
                               std::fill(totals.begin(), totals.end(), T{0});
                               for (size_t i = 0; i < blocks.size; ++i) {
                                 const size_t position = isReverse ? blocks.size - 1 - i : i;
                                 const size_t first = (o * blocks.size + position) * blocks.inner;
                                 addRow(input + first, totals.data(), output + first, blocks.inner,
                                        isExclusive);
                               }
                             }
                           });
        return {};
      });
}

}  // namespace

const OperationDefinition kCumsumOperation = {OperationType::kCumsum, validate,
                                              prepareLikeInput<parseAxis>, execute};

}  // namespace hearth::ops
