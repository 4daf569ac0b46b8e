// SPDX-License-Identifier: Apache-2.0
// UNIQUE of the extension. Input: data of rank 1. Outputs: the distinct elements in the order of
// their first occurrence; and for each element of the data its index in the first output
// (TENSOR_INT32 or TENSOR_INT64). Each NaN is an element of its own.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 2));
  HEARTH_TRY(signature.inputTensor(0,
                                   kQuant8Tensors | OperandType::kTensorQuant16Symm |
                                       OperandType::kTensorInt16 | OperandType::kTensorInt32 |
                                       OperandType::kTensorInt64 | OperandType::kTensorFloat32,
                                   1, 1));
  HEARTH_TRY(signature.outputLike(0, 0));
  return signature.outputType(1, kIndexTensors);
}

struct Places {
  std::vector<uint32_t> places;  // for each element, the index of its distinct element
  std::vector<uint32_t> firsts;  // for each distinct element, where it occurs first
};

// Sorts instead of hashing: a hostile input could be chosen so that all elements have one hash.
template <typename T>
Places findPlaces(const T* values, uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  const auto isLess = [values](uint32_t a, uint32_t b) {
    const T x = values[a];
    const T y = values[b];
    if (x < y || y < x) return x < y;
    // NaN comes last. Equal elements keep their order.
    const bool isNumberX = x == x;
    const bool isNumberY = y == y;
    return isNumberX != isNumberY ? isNumberX : a < b;
  };
  std::ranges::sort(order, isLess);
  Places result;
  result.places.resize(count);
  // Each element first gets the index of the first element that equals it.
  for (uint32_t i = 0; i < count; ++i) {
    const bool isNew = i == 0 || !(values[order[i]] == values[order[i - 1]]);
    result.places[order[i]] = isNew ? order[i] : result.places[order[i - 1]];
  }
  for (uint32_t i = 0; i < count; ++i) {
    const bool isFirst = result.places[i] == i;
    if (isFirst) result.firsts.push_back(i);
    result.places[i] =
        isFirst ? static_cast<uint32_t>(result.firsts.size()) - 1 : result.places[result.places[i]];
  }
  return result;
}

// Calls visit(values, places) with the elements and the result of findPlaces() for them.
template <typename Visit>
Status withPlaces(const Tensor& data, const Visit& visit) {
  return visitElementType(data.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    const T* values = data.as<T>();
    return visit(values, findPlaces(values, static_cast<uint32_t>(data.elementCount())));
  });
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 2));
  HEARTH_TRY(requireRank(context, 0, 1, 1));
  const Tensor& data = context.inputs[0];
  if (data.data == nullptr) return needsRuntimeValue(context, 0);
  HEARTH_TRY(withPlaces(data, [&](const auto*, const Places& found) {
    return context.setOutputDimensions(0, {static_cast<uint32_t>(found.firsts.size())});
  }));
  return context.setOutputDimensions(1, data.dimensions);
}

Status execute(OperationContext& context) {
  return withPlaces(context.inputs[0], [&](const auto* values, const Places& found) -> Status {
    auto* different = context.outputs[0].as<std::remove_cvref_t<decltype(*values)>>();
    for (const uint32_t first : found.firsts) *different++ = values[first];
    if (context.outputs[1].type() == OperandType::kTensorInt64)
      std::ranges::copy(found.places, context.outputs[1].as<int64_t>());
    else
      std::ranges::copy(found.places, context.outputs[1].as<int32_t>());
    return {};
  });
}

}  // namespace

const OperationDefinition kUniqueOperation = {OperationType::kUnique, validate, prepare, execute};

}  // namespace hearth::ops
