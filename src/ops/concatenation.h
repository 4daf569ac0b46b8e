// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct ConcatenationParameters {
  size_t tensorCount = 0;  // the first inputs; the axis follows them
  size_t axis = 0;         // in [0, rank)
  Dimensions dimensions;   // of the output
};

// For the bits of each of the 256 values of an 8-bit input, those of the value in the output's
// scale and zero point. Both have the same type.
std::array<uint8_t, 256> requantizedBytes(const graph::Operand& input,
                                          const graph::Operand& output);

// All inputs must have a complete shape, else needsRuntimeValue().
Result<ConcatenationParameters> parseConcatenation(const OperationContext& context);

}  // namespace hearth::ops
