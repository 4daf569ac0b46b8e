// SPDX-License-Identifier: Apache-2.0
// What ROI_ALIGN and ROI_POOLING share: inputs 0 to 6 and the output's shape.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

struct RegionParameters {
  bool isNchw = false;
  uint32_t batches = 0;
  uint32_t height = 0;  // of the feature map
  uint32_t width = 0;
  uint32_t depth = 0;
  uint32_t regions = 0;
  uint32_t outputHeight = 0;
  uint32_t outputWidth = 0;
  float heightRatio = 1.0f;  // image pixels per feature-map pixel
  float widthRatio = 1.0f;
  Dimensions dimensions;  // of the output, in its own layout

  // Offset of an element of the feature map.
  size_t inputAt(size_t batch, size_t y, size_t x, size_t channel) const {
    return isNchw ? ((batch * depth + channel) * height + y) * width + x
                  : ((batch * height + y) * width + x) * depth + channel;
  }
  size_t outputAt(size_t region, size_t y, size_t x, size_t channel) const {
    return isNchw ? ((region * depth + channel) * outputHeight + y) * outputWidth + x
                  : ((region * outputHeight + y) * outputWidth + x) * depth + channel;
  }
};

namespace region_pooling {
enum Input : size_t {
  kFeatures,
  kRegions,
  kBatches,
  kOutputHeight,
  kOutputWidth,
  kHeightRatio,
  kWidthRatio
};
}  // namespace region_pooling

Status validateRegionPooling(const Signature& signature, size_t layoutInput);
Result<RegionParameters> parseRegionPooling(const OperationContext& context, size_t layoutInput);

}  // namespace hearth::ops
