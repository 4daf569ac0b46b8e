// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Arguments of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. [0] is height, [1] width.
struct SpaceToBatchParameters {
  std::array<uint32_t, 2> block = {1, 1};
  std::array<uint32_t, 2> before = {0, 0};  // SPACE_TO_BATCH_ND: padding in front
  std::array<uint32_t, 2> after = {0, 0};
  bool isNchw = false;
  Dimensions dimensions;  // of the output, in its own layout
};

// Input rank 4 with two block sizes, or TFLite's rank 3 (batch, height, channels) with one.
// needsRuntimeValue() while block sizes or paddings have no value yet.
Result<SpaceToBatchParameters> parseSpaceToBatch(const OperationContext& context);

}  // namespace hearth::ops
