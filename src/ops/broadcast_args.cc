// SPDX-License-Identifier: Apache-2.0
// BROADCAST_ARGS of the extension: the shape of the broadcast of two shapes. Inputs: two
// TENSOR_INT32 or TENSOR_INT64 of rank 1.
#include <algorithm>

#include "ops/broadcast.h"
#include "ops/dimensions_output.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, kIndexTensors));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  for (const size_t i : {0, 1}) HEARTH_TRY(signature.inputRank(i, 1, 1));
  return signature.outputTypeLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  for (const size_t i : {0, 1}) HEARTH_TRY(requireRank(context, i, 1, 1));
  return context.setOutputDimensions(
      0, {std::max(context.inputs[0].dimensions[0], context.inputs[1].dimensions[0])});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Dimensions left, dimensionsArgument(context, 0));
  HEARTH_ASSIGN(const Dimensions right, dimensionsArgument(context, 1));
  HEARTH_ASSIGN(const Dimensions both, broadcastShapes(context, left, right));
  storeDimensions(context, both);
  return {};
}

}  // namespace

const OperationDefinition kBroadcastArgsOperation = {OperationType::kBroadcastArgs, validate,
                                                     prepare, execute};

}  // namespace hearth::ops
