// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "graph/model.h"
#include "hearth_xnnpack.h"

namespace hearth::cpu {

// Sets up an operator of XNNPACK through the function for the type of its tensors: float32, uint8
// or else int8.
inline xnn_status setupTyped(graph::OperandType type, xnn_operator_t op, const void* in, void* out,
                             xnn_status (*f32)(xnn_operator_t, const float*, float*),
                             xnn_status (*u8)(xnn_operator_t, const uint8_t*, uint8_t*),
                             xnn_status (*s8)(xnn_operator_t, const int8_t*, int8_t*)) {
  switch (type) {
    case graph::OperandType::kTensorFloat32:
      return f32(op, static_cast<const float*>(in), static_cast<float*>(out));
    case graph::OperandType::kTensorQuant8Asymm:
      return u8(op, static_cast<const uint8_t*>(in), static_cast<uint8_t*>(out));
    default:
      return s8(op, static_cast<const int8_t*>(in), static_cast<int8_t*>(out));
  }
}

}  // namespace hearth::cpu
