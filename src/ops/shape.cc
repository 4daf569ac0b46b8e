// SPDX-License-Identifier: Apache-2.0
// SHAPE of the extension: the dimensions of the data as TENSOR_INT32 or TENSOR_INT64. Input: data.
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kMovableTensors));
  return signature.outputType(0, kIndexTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, {static_cast<uint32_t>(context.inputs[0].rank())});
}

Status execute(OperationContext& context) {
  const Dimensions& dimensions = context.inputs[0].dimensions;
  const Tensor& output = context.outputs[0];
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (output.type() == OperandType::kTensorInt64)
      output.as<int64_t>()[i] = dimensions[i];
    else
      output.as<int32_t>()[i] = static_cast<int32_t>(dimensions[i]);
  }
  return {};
}

}  // namespace

const OperationDefinition kShapeOperation = {OperationType::kShape, validate, prepare, execute};

}  // namespace hearth::ops
