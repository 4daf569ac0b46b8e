// SPDX-License-Identifier: Apache-2.0
// SHAPE of the extension: the dimensions of the data as TENSOR_INT32 or TENSOR_INT64. Input: data.
#include "ops/dimensions_output.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kMovedTensors));
  return signature.outputType(0, kIndexTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, {static_cast<uint32_t>(context.inputs[0].rank())});
}

Status execute(OperationContext& context) {
  storeDimensions(context, context.inputs[0].dimensions);
  return {};
}

}  // namespace

const OperationDefinition kShapeOperation = {OperationType::kShape, validate, prepare, execute};

}  // namespace hearth::ops
