// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/operation.h"

namespace hearth::ops {

// Writes dimensions to output 0, a TENSOR_INT32 or TENSOR_INT64 with as many elements.
inline void storeDimensions(const OperationContext& context, const Dimensions& dimensions) {
  const Tensor& output = context.outputs[0];
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (output.type() == OperandType::kTensorInt64)
      output.as<int64_t>()[i] = dimensions[i];
    else
      output.as<int32_t>()[i] = static_cast<int32_t>(dimensions[i]);
  }
}

}  // namespace hearth::ops
