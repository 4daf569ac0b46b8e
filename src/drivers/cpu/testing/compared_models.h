// SPDX-License-Identifier: Apache-2.0
// For tests: names and data for models that are compared with the reference kernels.
#pragma once

#include <cstddef>

#include "drivers/cpu/testing/reference_comparison.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

inline constexpr auto kFloat = OperandType::kTensorFloat32;
inline constexpr auto kInt8 = OperandType::kTensorQuant8AsymmSigned;
inline constexpr auto kUint8 = OperandType::kTensorQuant8Asymm;

// The number of elements of a tensor.
inline size_t countOf(const Dimensions& dimensions) {
  size_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

// Reproducible content of a float32 tensor, in [-spread, spread).
inline Bytes floatsFor(const Dimensions& dimensions, unsigned seed, float spread = 1.0f) {
  return bytesOf(randomFloats(countOf(dimensions), seed, spread));
}

}  // namespace hearth::cpu
