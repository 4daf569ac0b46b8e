// SPDX-License-Identifier: Apache-2.0
// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL (inputs: two tensors, broadcast).
// Quantised inputs are compared as real numbers, whatever their scales. EQUAL and NOT_EQUAL compare
// strings as well.
#include <functional>

#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/prepare.h"
#include "ops/quantization.h"
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
  const bool isOfEquality =
      signature.type() == OperationType::kEqual || signature.type() == OperationType::kNotEqual;
  HEARTH_TRY(signature.inputType(
      0, isOfEquality ? kComparable | OperandType::kTensorString : kComparable));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  return signature.outputType(0, OperandType::kTensorBool8);
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

// As real numbers, which are made where they are compared: copies of whole tensors would be four
// times as large as these.
template <typename Compare, typename T>
void compareDequantized(const OperationContext& context) {
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  mapBroadcast(context, context.outputs[0].dimensions, a.as<T>(), b.as<T>(),
               context.outputs[0].as<uint8_t>(),
               [scaleA = stepOf(*a.operand), zeroA = a.operand->zeroPoint,
                scaleB = stepOf(*b.operand), zeroB = b.operand->zeroPoint](T x, T y) {
                 return static_cast<uint8_t>(Compare()(scaleA * static_cast<float>(x - zeroA),
                                                       scaleB * static_cast<float>(y - zeroB)));
               });
}

template <typename Compare>
Status execute(OperationContext& context) {
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  // With one scale and zero point, stored values have the same order as the real numbers.
  const bool isSame = isSameQuantization(*a.operand, *b.operand);
  if (a.type() == OperandType::kTensorInt32) {
    compareStored<Compare, int32_t>(context);
  } else if (a.type() == OperandType::kTensorInt64 || a.type() == OperandType::kTensorString) {
    // Equal strings have one handle.
    compareStored<Compare, int64_t>(context);
  } else if (a.type() == OperandType::kTensorBool8) {
    compareStored<Compare, uint8_t>(context);
  } else if (a.type() == OperandType::kTensorQuant8Asymm) {
    isSame ? compareStored<Compare, uint8_t>(context)
           : compareDequantized<Compare, uint8_t>(context);
  } else if (a.type() == OperandType::kTensorQuant8AsymmSigned) {
    isSame ? compareStored<Compare, int8_t>(context) : compareDequantized<Compare, int8_t>(context);
  } else {
    compareAll<Compare>(context, RealInput(a).data(), RealInput(b).data());
  }
  return {};
}

template <typename Compare>
constexpr OperationDefinition definition(OperationType type) {
  return {type, validate, prepareBroadcastOfTwo, execute<Compare>};
}

}  // namespace

const OperationDefinition kEqualOperation = definition<std::equal_to<>>(OperationType::kEqual);
const OperationDefinition kGreaterOperation = definition<std::greater<>>(OperationType::kGreater);
const OperationDefinition kGreaterEqualOperation =
    definition<std::greater_equal<>>(OperationType::kGreaterEqual);
const OperationDefinition kLessOperation = definition<std::less<>>(OperationType::kLess);
const OperationDefinition kLessEqualOperation =
    definition<std::less_equal<>>(OperationType::kLessEqual);
const OperationDefinition kNotEqualOperation =
    definition<std::not_equal_to<>>(OperationType::kNotEqual);

}  // namespace hearth::ops
