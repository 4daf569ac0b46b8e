// SPDX-License-Identifier: Apache-2.0
// ONE_HOT of the extension: adds a dimension in which the element that the index names is "on" and
// all others are "off"; an index outside gives none that is "on". Inputs: indices, INT32 tensor
// depth, on and off (tensors of one element), INT32 axis (-1: the last).
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kIndices, kDepth, kOn, kOff, kAxis, kInputCount };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 1));
  HEARTH_TRY(signature.inputTensor(kIndices, kIndexTensors, 0, kMaximumRank - 1));
  HEARTH_TRY(signature.inputType(kDepth, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputType(kOn, kMovableTensors));
  HEARTH_TRY(signature.inputTypeLike(kOff, kOn));
  HEARTH_TRY(signature.inputType(kAxis, OperandType::kInt32));
  return signature.outputLike(0, kOn);
}

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 4, 1));
  HEARTH_TRY(requireRank(context, kIndices, 0, kMaximumRank - 1));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(kAxis));
  return resolveAxis(context, axis, context.inputs[kIndices].rank() + 1);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  for (const size_t i : {kDepth, kOn, kOff}) HEARTH_TRY(requireOneElement(context, i));
  HEARTH_ASSIGN(const std::vector<int64_t> depth, context.intVector(kDepth));
  HEARTH_ASSIGN(const uint32_t size, toDimension(context, depth[0]));
  Dimensions dimensions = context.inputs[kIndices].dimensions;
  dimensions.insert(dimensions.begin() + static_cast<ptrdiff_t>(axis), size);
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(kIndices));
  const Dimensions& dimensions = context.outputs[0].dimensions;
  const size_t depth = dimensions[axis];
  size_t inner = 1;
  for (size_t i = axis + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
  return visitElementType(
      context.inputs[kOn].type(), [&]<typename T>(std::type_identity<T>) -> Status {
        T* target = context.outputs[0].as<T>();
        std::fill_n(target, context.outputs[0].elementCount(), *context.inputs[kOff].as<T>());
        for (size_t i = 0; i < indices.size(); ++i) {
          if (indices[i] < 0 || static_cast<uint64_t>(indices[i]) >= depth) continue;
          const size_t place = static_cast<size_t>(indices[i]);
          target[(i / inner * depth + place) * inner + i % inner] = *context.inputs[kOn].as<T>();
        }
        return {};
      });
}

}  // namespace

const OperationDefinition kOneHotOperation = {OperationType::kOneHot, validate, prepare, execute};

}  // namespace hearth::ops
