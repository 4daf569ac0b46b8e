// SPDX-License-Identifier: Apache-2.0
// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL (inputs: two tensors, broadcast).
// Quantised inputs are compared as real numbers, whatever their scales.
#include <functional>

#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kReals =
    kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant16Symm | OperandType::kTensorInt16;
constexpr TypeSet kComparable =
    kReals | OperandType::kTensorBool8 | OperandType::kTensorInt32 | OperandType::kTensorInt64;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, kComparable));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  return signature.outputType(0, OperandType::kTensorBool8);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_ASSIGN(Dimensions dimensions, broadcastInputs(context, 0, 1));
  return context.setOutputDimensions(0, std::move(dimensions));
}

template <typename Compare, typename T>
void compareAll(const OperationContext& context, const T* a, const T* b) {
  mapBroadcast(context, context.outputs[0].dimensions, a, b, context.outputs[0].as<uint8_t>(),
               [](T x, T y) { return static_cast<uint8_t>(Compare()(x, y)); });
}

template <typename Compare, typename T>
void compareStored(const OperationContext& context) {
  compareAll<Compare>(context, context.inputs[0].as<T>(), context.inputs[1].as<T>());
}

template <typename Compare>
Status execute(OperationContext& context) {
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  // With one scale and zero point, stored values have the same order as the real numbers.
  const bool isSame = isSameQuantization(*a.operand, *b.operand);
  if (a.type() == OperandType::kTensorInt32) {
    compareStored<Compare, int32_t>(context);
  } else if (a.type() == OperandType::kTensorInt64) {
    compareStored<Compare, int64_t>(context);
  } else if (a.type() == OperandType::kTensorBool8 ||
             (a.type() == OperandType::kTensorQuant8Asymm && isSame)) {
    compareStored<Compare, uint8_t>(context);
  } else if (a.type() == OperandType::kTensorQuant8AsymmSigned && isSame) {
    compareStored<Compare, int8_t>(context);
  } else {
    compareAll<Compare>(context, RealInput(a).data(), RealInput(b).data());
  }
  return {};
}

}  // namespace

const OperationDefinition kEqualOperation = {OperationType::kEqual, validate, prepare,
                                             execute<std::equal_to<>>};
const OperationDefinition kGreaterOperation = {OperationType::kGreater, validate, prepare,
                                               execute<std::greater<>>};
const OperationDefinition kGreaterEqualOperation = {OperationType::kGreaterEqual, validate, prepare,
                                                    execute<std::greater_equal<>>};
const OperationDefinition kLessOperation = {OperationType::kLess, validate, prepare,
                                            execute<std::less<>>};
const OperationDefinition kLessEqualOperation = {OperationType::kLessEqual, validate, prepare,
                                                 execute<std::less_equal<>>};
const OperationDefinition kNotEqualOperation = {OperationType::kNotEqual, validate, prepare,
                                                execute<std::not_equal_to<>>};

}  // namespace hearth::ops
