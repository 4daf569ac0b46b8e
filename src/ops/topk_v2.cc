// SPDX-License-Identifier: Apache-2.0
// TOPK_V2: the k largest elements of each row, largest first; of equal elements the first comes
// first.
#include "ops/topk_v2.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 2));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32 | OperandType::kTensorInt32));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  HEARTH_TRY(signature.outputQuantizationLike(0, 0));
  return signature.outputType(1, OperandType::kTensorInt32);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 0));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  Dimensions dimensions = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const int32_t k, parseTopkCount(context));
  if (k < 1 || static_cast<uint32_t>(k) > dimensions.back())
    return fail(ErrorCode::kBadData, "{} asks for the {} largest of {} elements.",
                context.describe(), k, dimensions.back());
  dimensions.back() = static_cast<uint32_t>(k);
  HEARTH_TRY(context.setOutputDimensions(0, dimensions));
  return context.setOutputDimensions(1, std::move(dimensions));
}

// A strict order that includes NaN, which counts as smaller than all numbers.
template <typename T>
HEARTH_INLINE inline bool isLarger(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a > b;
  else
    return (a > b) | ((b != b) & (a == a));
}

// Whether any of `count` values is larger than `last`.
template <typename T>
bool hasLarger(const T* values, size_t count, T last) {
  // Flags are as wide as the values, so that vectors of them need no conversion.
  using Flags = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  Flags flags = 0;
  Flags* const found = &flags;
  base::onWidestVectors([=]() HEARTH_INLINE {
    Flags any = 0;
    for (size_t i = 0; i < count; ++i) any |= static_cast<Flags>(isLarger(values[i], last));
    *found = any;
  });
  return flags != 0;
}

Status execute(OperationContext& context) {
  const Tensor& input = context.inputs[0];
  HEARTH_ASSIGN(const int32_t k, parseTopkCount(context));
  // Without this, the loop would run over empty rows, of which there may be any number.
  if (input.elementCount() == 0) return {};
  const size_t size = input.dimensions.back();
  const size_t rows = input.elementCount() / size;
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    std::vector<int32_t> order(static_cast<size_t>(k));
    for (size_t row = 0; row < rows; ++row) {
      const T* values = input.as<T>() + row * size;
      const auto comesBefore = [&](int32_t a, int32_t b) {
        if (isLarger(values[a], values[b])) return true;
        return !isLarger(values[b], values[a]) && a < b;
      };
      // A heap whose front is the worst of the best elements. Most elements are compared with the
      // front alone; elements equal to it come after it.
      std::iota(order.begin(), order.end(), 0);
      std::make_heap(order.begin(), order.end(), comesBefore);
      T last = values[order.front()];
      constexpr size_t kBlock = 256 / sizeof(T);
      for (size_t first = order.size(); first < size; first += kBlock) {
        const size_t end = std::min(size, first + kBlock);
        if (!hasLarger(values + first, end - first, last)) continue;
        for (size_t i = first; i < end; ++i) {
          if (!isLarger(values[i], last)) continue;
          std::pop_heap(order.begin(), order.end(), comesBefore);
          order.back() = static_cast<int32_t>(i);
          std::push_heap(order.begin(), order.end(), comesBefore);
          last = values[order.front()];
        }
      }
      std::sort_heap(order.begin(), order.end(), comesBefore);
      for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
        const size_t at = row * static_cast<size_t>(k) + i;
        if (context.hasOutput(0)) context.outputs[0].as<T>()[at] = values[order[i]];
        if (context.hasOutput(1)) context.outputs[1].as<int32_t>()[at] = order[i];
      }
    }
    return {};
  });
}

}  // namespace

Result<int32_t> parseTopkCount(const OperationContext& context) {
  if (!context.hasInput(1) || graph::isScalar(context.inputs[1].type()))
    return context.scalar<int32_t>(1);
  HEARTH_TRY(requireOneElement(context, 1));
  HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(1));
  return static_cast<int32_t>(values[0]);
}

const OperationDefinition kTopkV2Operation = {OperationType::kTopkV2, validate, prepare, execute};

}  // namespace hearth::ops
