// SPDX-License-Identifier: Apache-2.0
// From an operand type to the C++ type of its elements, and to the code for it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/result.h"
#include "base/vector_dispatch.h"
#include "ops/half.h"
#include "ops/operation.h"

namespace hearth::ops {

// base::onWidestVectors() for elements of type T. For large kernels: types that models hardly ever
// compute with have no code for each instruction set.
template <typename T, typename Body>
void onVectorsOf(const Body& body) {
  constexpr bool kIsRare =
      std::is_same_v<T, double> || std::is_same_v<T, uint16_t> || std::is_same_v<T, uint32_t>;
  if constexpr (kIsRare)
    body();
  else
    base::onWidestVectors(body);
}

// Calls visitor(std::type_identity<T>()) with T the element as it is stored (quantised values as
// their integers, TENSOR_BOOL8 as uint8_t) and returns its Status. kUnsupported for other types.
template <typename Visitor>
Status visitElementType(OperandType type, Visitor&& visitor) {
  switch (type) {
    case OperandType::kTensorFloat32:
      return visitor(std::type_identity<float>());
    case OperandType::kTensorFloat16:
      return visitor(std::type_identity<Half>());
    case OperandType::kTensorFloat64:
      return visitor(std::type_identity<double>());
    case OperandType::kTensorInt32:
      return visitor(std::type_identity<int32_t>());
    case OperandType::kTensorUint32:
      return visitor(std::type_identity<uint32_t>());
    case OperandType::kTensorInt64:
      return visitor(std::type_identity<int64_t>());
    case OperandType::kTensorUint64:
      return visitor(std::type_identity<uint64_t>());
    case OperandType::kTensorQuant8Asymm:
    case OperandType::kTensorBool8:
      return visitor(std::type_identity<uint8_t>());
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
      return visitor(std::type_identity<int8_t>());
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      return visitor(std::type_identity<int16_t>());
    case OperandType::kTensorQuant16Asymm:
    case OperandType::kTensorUint16:
      return visitor(std::type_identity<uint16_t>());
    default:
      return fail(ErrorCode::kUnsupported, "{} has no elements to compute with.",
                  graph::nameOf(type));
  }
}

}  // namespace hearth::ops
