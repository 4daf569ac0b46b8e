// SPDX-License-Identifier: Apache-2.0
// What RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR share.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct ResizeParameters {
  uint32_t outputHeight = 0;  // at least 1, as is the width
  uint32_t outputWidth = 0;
  bool isNchw = false;
  bool alignCorners = false;      // corner pixels keep their centres
  bool halfPixelCenters = false;  // pixel i has its centre at i + 0.5; never with alignCorners
  Dimensions dimensions;          // of the output, in its own layout
};

Result<ResizeParameters> parseResize(const OperationContext& context);

// Input pixels per output pixel along one side.
float resizeScale(uint32_t input, uint32_t output, bool alignCorners);

// Signature of both operations.
Status validateResize(const graph::Model& model, const graph::Subgraph& subgraph,
                      const graph::Operation& operation);
Status prepareResize(OperationContext& context);

}  // namespace hearth::ops
