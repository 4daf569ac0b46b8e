// SPDX-License-Identifier: Apache-2.0
// HASHTABLE_LOOKUP: finds rows by keys in ascending order; a missing key gives a row of zeros.
#include <algorithm>
#include <cstring>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 2));
  for (const size_t i : {0, 1}) {
    HEARTH_TRY(signature.inputTensor(i, OperandType::kTensorInt32, 1, 1));
  }
  HEARTH_TRY(signature.inputTensor(2, kMovedTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.outputTypeLike(0, 2));
  HEARTH_TRY(signature.outputQuantizationLike(0, 2));
  return signature.outputType(1, OperandType::kTensorQuant8Asymm);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 0));
  HEARTH_TRY(requireRank(context, 0, 1, 1));
  HEARTH_TRY(requireRank(context, 1, 1, 1));
  HEARTH_TRY(requireRank(context, 2, 1, kMaximumRank));
  Dimensions dimensions = context.inputs[2].dimensions;
  if (context.inputs[1].dimensions[0] != dimensions[0])
    return fail(ErrorCode::kBadData, "{} has {} keys and {} rows.", context.describe(),
                context.inputs[1].dimensions[0], dimensions[0]);
  const uint32_t count = context.inputs[0].dimensions[0];
  dimensions[0] = count;
  HEARTH_TRY(context.setOutputDimensions(0, std::move(dimensions)));
  return context.setOutputDimensions(1, {count});
}

Status execute(OperationContext& context) {
  const Tensor& values = context.inputs[2];
  uint64_t row = graph::elementSize(values.type());
  for (size_t i = 1; i < values.rank(); ++i) row *= values.dimensions[i];
  const int32_t* lookups = context.inputs[0].as<int32_t>();
  const int32_t* keys = context.inputs[1].as<int32_t>();
  const int32_t* keysEnd = keys + context.inputs[1].dimensions[0];
  for (uint64_t i = 0; i < context.inputs[0].dimensions[0]; ++i) {
    const int32_t* found = std::lower_bound(keys, keysEnd, lookups[i]);
    const bool isHit = found != keysEnd && *found == lookups[i];
    if (context.hasOutput(1)) context.outputs[1].as<uint8_t>()[i] = isHit;
    if (!context.hasOutput(0)) continue;
    uint8_t* target = context.outputs[0].as<uint8_t>() + i * row;
    if (isHit)
      std::memcpy(target, values.as<uint8_t>() + static_cast<uint64_t>(found - keys) * row, row);
    else
      std::memset(target, 0, row);
  }
  return {};
}

}  // namespace

const OperationDefinition kHashtableLookupOperation = {OperationType::kHashtableLookup, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
