// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Arguments of SPACE_TO_DEPTH and DEPTH_TO_SPACE.
struct SpaceToDepthParameters {
  uint32_t blockSize = 1;
  bool isNchw = false;
  Dimensions dimensions;  // of the output, in its own layout
};

Result<SpaceToDepthParameters> parseSpaceToDepth(const OperationContext& context);

}  // namespace hearth::ops
