// SPDX-License-Identifier: Apache-2.0
// Operations that map each element of input 0 to one element of output 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/validation.h"

namespace hearth::ops {

// 16-bit types of activations, which .tflite files have and NNAPI does not.
inline constexpr TypeSet kQuant16Activations =
    OperandType::kTensorQuant16Symm | OperandType::kTensorInt16;

// Checks one input of `types`, of any rank, and an output of the same type.
inline Status validateElementwise(const Signature& signature, TypeSet types) {
  HEARTH_TRY(signature.inputType(0, types));
  return signature.outputTypeLike(0, 0);
}

template <const TypeSet& types>
Status validateUnary(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  return validateElementwise(signature, types);
}

// The output has the input's shape.
inline Status prepareElementwise(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

// Applies function(float) -> float to the real values of all elements.
template <typename Function>
void computeReals(OperationContext& context, const Function& function) {
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  for (size_t i = 0; i < input.size(); ++i) output[i] = function(input[i]);
  output.store();
}

template <typename T, typename Function>
void computeElements(OperationContext& context, const Function& function) {
  const T* input = context.inputs[0].as<T>();
  T* output = context.outputs[0].as<T>();
  const size_t count = context.outputs[0].elementCount();
  for (size_t i = 0; i < count; ++i) output[i] = function(input[i]);
}

}  // namespace hearth::ops
