// SPDX-License-Identifier: Apache-2.0
// Sets of operand types that several operations take.
#pragma once

#include "ops/validation.h"

namespace hearth::ops {

// Every tensor type with elements of whole bytes, for operations that only move elements.
inline constexpr TypeSet kMovableTensors =
    kFloatTensors | kQuant8Tensors | OperandType::kTensorInt32 | OperandType::kTensorBool8 |
    OperandType::kTensorQuant8Symm | OperandType::kTensorQuant16Symm |
    OperandType::kTensorQuant16Asymm | OperandType::kTensorInt64 | OperandType::kTensorUint64 |
    OperandType::kTensorFloat64 | OperandType::kTensorInt16 | OperandType::kTensorUint16 |
    OperandType::kTensorUint32 | OperandType::kTensorComplex64;

// Strings as well: of those that compute nothing from an element.
inline constexpr TypeSet kMovedTensors = kMovableTensors | OperandType::kTensorString;

// Indices, shapes and axes: INT32, and TFLite's INT64.
inline constexpr TypeSet kIndexTensors = OperandType::kTensorInt32 | OperandType::kTensorInt64;

// Checks data of any movable type, a second input of integers, and an output like the data.
inline Status validateMove(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputType(0, kMovedTensors));
  HEARTH_TRY(signature.inputRank(0, 0, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, kIndexTensors));
  HEARTH_TRY(signature.inputRank(1, 1, 1));
  return signature.outputLike(0, 0);
}

}  // namespace hearth::ops
