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

// What is compared, and how: `left` and `right` are the inputs, for GREATER and GREATER_EQUAL in
// the other order, so that these need no code of their own; `flipped` is 1 where the result is the
// opposite.
struct Comparison {
  const OperationContext& context;
  const Tensor& left;
  const Tensor& right;
  uint8_t flipped;

  // `holds` says of two elements whether it holds, as 0 or 1.
  template <typename T, typename Holds>
  void run(const T* a, const T* b, Holds holds) const {
    mapBroadcast(context.threadPool, context.outputs[0].dimensions,
                 {&left.dimensions, &right.dimensions}, a, b, context.outputs[0].as<uint8_t>(),
                 [holds, flip = flipped](T x, T y) {
                   return static_cast<uint8_t>(static_cast<uint8_t>(holds(x, y)) ^ flip);
                 });
  }
};

template <typename Compare, typename T>
void compareStored(const Comparison& c) {
  c.run(c.left.as<T>(), c.right.as<T>(), Compare());
}

// As real numbers, which are made where they are compared: copies of whole tensors would be four
// times as large as these.
template <typename Compare, typename T>
void compareDequantized(const Comparison& c) {
  c.run(c.left.as<T>(), c.right.as<T>(),
        [leftScale = stepOf(*c.left.operand), leftZero = c.left.operand->zeroPoint,
         rightScale = stepOf(*c.right.operand), rightZero = c.right.operand->zeroPoint](T x, T y) {
          return Compare()(leftScale * static_cast<float>(x - leftZero),
                           rightScale * static_cast<float>(y - rightZero));
        });
}

template <typename Compare>
void compareTensors(const Comparison& c) {
  const OperandType type = c.left.type();
  // With one scale and zero point, stored values have the same order as the real numbers.
  const bool isSame = isSameQuantization(*c.left.operand, *c.right.operand);
  if (type == OperandType::kTensorInt32) {
    compareStored<Compare, int32_t>(c);
  } else if (type == OperandType::kTensorInt64 || type == OperandType::kTensorString) {
    // Equal strings have one handle.
    compareStored<Compare, int64_t>(c);
  } else if (type == OperandType::kTensorBool8) {
    compareStored<Compare, uint8_t>(c);
  } else if (type == OperandType::kTensorQuant8Asymm) {
    isSame ? compareStored<Compare, uint8_t>(c) : compareDequantized<Compare, uint8_t>(c);
  } else if (type == OperandType::kTensorQuant8AsymmSigned) {
    isSame ? compareStored<Compare, int8_t>(c) : compareDequantized<Compare, int8_t>(c);
  } else {
    c.run(RealInput(c.left).data(), RealInput(c.right).data(), Compare());
  }
}

template <typename Compare, bool kIsSwapped = false, bool kIsNegated = false>
Status execute(OperationContext& context) {
  const Tensor& first = context.inputs[0];
  const Tensor& second = context.inputs[1];
  compareTensors<Compare>({context, kIsSwapped ? second : first, kIsSwapped ? first : second,
                           kIsNegated ? uint8_t{1} : uint8_t{0}});
  return {};
}

constexpr OperationDefinition definition(OperationType type, Status (*run)(OperationContext&)) {
  return {type, validate, prepareBroadcastOfTwo, run};
}

constexpr bool kSwapped = true;
constexpr bool kNegated = true;

}  // namespace

const OperationDefinition kEqualOperation =
    definition(OperationType::kEqual, execute<std::equal_to<>>);
const OperationDefinition kNotEqualOperation =
    definition(OperationType::kNotEqual, execute<std::equal_to<>, false, kNegated>);
const OperationDefinition kLessOperation = definition(OperationType::kLess, execute<std::less<>>);
const OperationDefinition kGreaterOperation =
    definition(OperationType::kGreater, execute<std::less<>, kSwapped>);
const OperationDefinition kLessEqualOperation =
    definition(OperationType::kLessEqual, execute<std::less_equal<>>);
const OperationDefinition kGreaterEqualOperation =
    definition(OperationType::kGreaterEqual, execute<std::less_equal<>, kSwapped>);

}  // namespace hearth::ops
