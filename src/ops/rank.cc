// SPDX-License-Identifier: Apache-2.0
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kMovedTensors));
  return signature.outputType(0, OperandType::kInt32 | TypeSet(OperandType::kTensorInt32));
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, keepRankAboveZero(context, {}));
}

Status execute(OperationContext& context) {
  *context.outputs[0].as<int32_t>() = static_cast<int32_t>(context.inputs[0].rank());
  return {};
}

}  // namespace

const OperationDefinition kRankOperation = {OperationType::kRank, validate, prepare, execute};

}  // namespace hearth::ops
