// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Of PAD and PAD_V2.
struct PadParameters {
  std::vector<uint32_t> before;  // elements added in front, for each dimension
  std::vector<uint32_t> after;
  Dimensions dimensions;           // of the output
  std::array<uint8_t, 8> value{};  // the added element, in the first elementSize() bytes
};

// needsRuntimeValue() while the paddings or the pad value have no value yet.
Result<PadParameters> parsePad(const OperationContext& context);

// Reads a [rank, 2] tensor of counts that are not negative and adds them to the input's
// dimensions. Shared with MIRROR_PAD; leaves `value` at 0.
Result<PadParameters> parsePaddings(const OperationContext& context, size_t input);

}  // namespace hearth::ops
