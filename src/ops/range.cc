// SPDX-License-Identifier: Apache-2.0
// RANGE of the extension: start, start + delta, … up to but not including the limit. Inputs: start,
// limit, delta, tensors of one element and of the output's type.
#include <cmath>

#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kRangeTensors =
    OperandType::kTensorFloat32 | OperandType::kTensorInt32 | OperandType::kTensorInt64;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(0, kRangeTensors));
  for (const size_t i : {1, 2}) HEARTH_TRY(signature.inputTypeLike(i, 0));
  return signature.outputTypeLike(0, 0);
}

// Number of elements from start, in steps of `delta`, before the limit. In long double, which holds
// every int64_t.
template <typename T>
Result<uint32_t> countOf(const OperationContext& context) {
  const long double start = *context.inputs[0].as<T>();
  const long double limit = *context.inputs[1].as<T>();
  const long double delta = *context.inputs[2].as<T>();
  const long double count = std::ceil((limit - start) / delta);
  if (delta == 0 || !std::isfinite(count) || (limit != start && count < 0) ||
      count > static_cast<long double>(UINT32_MAX))
    return fail(ErrorCode::kBadData, "{} goes from {} to {} in steps of {}.", context.describe(),
                static_cast<double>(start), static_cast<double>(limit), static_cast<double>(delta));
  return static_cast<uint32_t>(count);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  for (size_t i = 0; i < 3; ++i) {
    HEARTH_TRY(requireOneElement(context, i));
    if (context.inputs[i].data == nullptr) return needsRuntimeValue(context, i);
  }
  uint32_t count = 0;
  HEARTH_TRY(
      visitElementType(context.inputs[0].type(), [&]<typename T>(std::type_identity<T>) -> Status {
        HEARTH_ASSIGN(count, countOf<T>(context));
        return {};
      }));
  return context.setOutputDimensions(0, {count});
}

Status execute(OperationContext& context) {
  return visitElementType(
      context.inputs[0].type(), [&]<typename T>(std::type_identity<T>) -> Status {
        const T start = *context.inputs[0].as<T>();
        const T delta = *context.inputs[2].as<T>();
        T* target = context.outputs[0].as<T>();
        const uint32_t count = context.outputs[0].dimensions[0];
        for (uint32_t i = 0; i < count; ++i) {
          // The results fit their type, but i * delta may not.
          if constexpr (std::is_integral_v<T>)
            target[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                       uint64_t{i} * static_cast<uint64_t>(delta));
          else
            target[i] = start + static_cast<T>(i) * delta;
        }
        return {};
      });
}

}  // namespace

const OperationDefinition kRangeOperation = {OperationType::kRange, validate, prepare, execute};

}  // namespace hearth::ops
