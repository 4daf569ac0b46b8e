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

// The images of the input as both operations traverse them: in NCHW every channel is an image whose
// pixels have one element.
struct ResizeImages {
  uint64_t count;
  uint32_t height, width;
  size_t depth;  // elements of a pixel

  ResizeImages(const Dimensions& input, bool isNchw)
      : count(uint64_t{input[0]} * (isNchw ? input[1] : 1)),
        height(input[isNchw ? 2 : 1]),
        width(input[isNchw ? 3 : 2]),
        depth(isNchw ? 1 : input[3]) {}
};

Result<ResizeParameters> parseResize(const OperationContext& context);

// Input pixels per output pixel along one side.
float resizeScale(uint32_t input, uint32_t output, bool alignCorners);

// Signature of both operations.
Status validateResize(const Signature& signature);
Status prepareResize(OperationContext& context);

}  // namespace hearth::ops
