// SPDX-License-Identifier: Apache-2.0
// BITWISE_XOR and RIGHT_SHIFT of the extension, on integers as they are stored. Inputs: two tensors
// of one type, which are broadcast. RIGHT_SHIFT keeps the sign. A negative shift count becomes 0;
// one that reaches the width of the type becomes that width less one.
#include <algorithm>
#include <climits>
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/prepare.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kBitTensors = kQuant8Tensors | OperandType::kTensorInt16 |
                                OperandType::kTensorUint16 | OperandType::kTensorInt32 |
                                OperandType::kTensorUint32;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, kBitTensors));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  return signature.outputTypeLike(0, 0);
}

struct Xor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct RightShift {
  template <typename T>
  static T apply(T value, T bits) {
    constexpr T kMost = static_cast<T>(sizeof(T) * CHAR_BIT - 1);
    return static_cast<T>(value >> std::clamp(bits, T{0}, kMost));
  }
};

template <typename Function>
Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  return visitElementType(output.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(int32_t))
      mapBroadcast(context, output.dimensions, context.inputs[0].as<T>(), context.inputs[1].as<T>(),
                   output.as<T>(), [](T a, T b) HEARTH_INLINE { return Function::apply(a, b); });
    return {};
  });
}

}  // namespace

const OperationDefinition kBitwiseXorOperation = {OperationType::kBitwiseXor, validate,
                                                  prepareBroadcastOfTwo, execute<Xor>};
const OperationDefinition kRightShiftOperation = {OperationType::kRightShift, validate,
                                                  prepareBroadcastOfTwo, execute<RightShift>};

}  // namespace hearth::ops
