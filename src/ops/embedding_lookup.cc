// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputRank(0, 1, 1));
  HEARTH_TRY(signature.inputType(1, kMovableTensors));
  HEARTH_TRY(signature.inputRank(1, 1, kMaximumRank));
  HEARTH_TRY(signature.outputTypeLike(0, 1));
  return signature.outputQuantizationLike(0, 1);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 1, 1));
  HEARTH_TRY(requireRank(context, 1, 1, kMaximumRank));
  Dimensions dimensions = context.inputs[1].dimensions;
  dimensions[0] = context.inputs[0].dimensions[0];
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  const Tensor& values = context.inputs[1];
  uint64_t row = graph::elementSize(values.type());
  for (size_t i = 1; i < values.rank(); ++i) row *= values.dimensions[i];
  const int32_t* lookups = context.inputs[0].as<int32_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  for (uint32_t i = 0; i < context.inputs[0].dimensions[0]; ++i, target += row) {
    if (lookups[i] < 0 || static_cast<uint32_t>(lookups[i]) >= values.dimensions[0])
      return fail(ErrorCode::kBadData, "Look-up {} of {} is {}, there are {} rows.", i,
                  context.describe(), lookups[i], values.dimensions[0]);
    std::memcpy(target, values.as<uint8_t>() + static_cast<uint64_t>(lookups[i]) * row, row);
  }
  return {};
}

}  // namespace

const OperationDefinition kEmbeddingLookupOperation = {OperationType::kEmbeddingLookup, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
