// SPDX-License-Identifier: Apache-2.0
// LOGICAL_AND and LOGICAL_OR (inputs: two tensors, broadcast), LOGICAL_NOT (data). Any byte but 0
// counts as true; results are 0 and 1.
#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/elementwise.h"
#include "ops/prepare.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kBooleans = OperandType::kTensorBool8;

Status validateBinary(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  return validateElementwise(signature, kBooleans);
}

template <bool isAnd>
Status executeBinary(OperationContext& context) {
  const uint8_t* a = context.inputs[0].as<uint8_t>();
  const uint8_t* b = context.inputs[1].as<uint8_t>();
  uint8_t* output = context.outputs[0].as<uint8_t>();
  mapBroadcast(context, context.outputs[0].dimensions, a, b, output, [](uint8_t x, uint8_t y) {
    const bool left = x != 0;
    const bool right = y != 0;
    return static_cast<uint8_t>(isAnd ? left & right : left | right);
  });
  return {};
}

Status executeNot(OperationContext& context) {
  computeElements<uint8_t>(context, [](uint8_t x) { return uint8_t{x == 0}; });
  return {};
}

}  // namespace

const OperationDefinition kLogicalAndOperation = {OperationType::kLogicalAnd, validateBinary,
                                                  prepareBroadcastOfTwo, executeBinary<true>};
const OperationDefinition kLogicalNotOperation = {
    OperationType::kLogicalNot, validateUnary<kBooleans>, prepareElementwise, executeNot};
const OperationDefinition kLogicalOrOperation = {OperationType::kLogicalOr, validateBinary,
                                                 prepareBroadcastOfTwo, executeBinary<false>};

}  // namespace hearth::ops
