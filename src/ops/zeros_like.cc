// SPDX-License-Identifier: Apache-2.0
// ZEROS_LIKE of the extension: zeros of the data's type and shape. Input: data.
#include <cstring>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kNumbers = kFloatTensors | OperandType::kTensorFloat64 |
                             OperandType::kTensorInt32 | OperandType::kTensorInt64 |
                             OperandType::kTensorBool8;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kNumbers));
  return signature.outputTypeLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  std::memset(output.data, 0, output.elementCount() * graph::elementSize(output.type()));
  return {};
}

}  // namespace

const OperationDefinition kZerosLikeOperation = {OperationType::kZerosLike, validate, prepare,
                                                 execute};

}  // namespace hearth::ops
