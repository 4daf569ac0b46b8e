// SPDX-License-Identifier: Apache-2.0
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// The value is a scalar for NNAPI's own types; TFLite passes a tensor of one element.
TypeSet valueTypes(OperandType type) {
  if (type == OperandType::kTensorFloat32) return OperandType::kFloat32 | TypeSet(type);
  if (type == OperandType::kTensorFloat16) return OperandType::kFloat16 | TypeSet(type);
  if (type == OperandType::kTensorInt32) return OperandType::kInt32 | TypeSet(type);
  return type;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, kIndexTensors, 1, 1));
  HEARTH_TRY(signature.outputType(0, kMovedTensors));
  return signature.inputType(1, valueTypes(signature.output(0).type));
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireOneElement(context, 1));
  HEARTH_ASSIGN(Dimensions dimensions, dimensionsArgument(context, 0));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  fillElements(graph::elementSize(output.type()), context.inputs[1].data, output.data,
               output.elementCount());
  return {};
}

}  // namespace

const OperationDefinition kFillOperation = {OperationType::kFill, validate, prepare, execute};

}  // namespace hearth::ops
