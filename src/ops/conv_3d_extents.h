// SPDX-License-Identifier: Apache-2.0
// How the filter of CONV_3D and CONV_3D_TRANSPOSE moves over a volume.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// One side of a volume: depth, height or width. The convolution goes from `input` elements to
// `output` positions of the filter; the transposed one goes the other way.
struct Extent {
  int64_t input = 0, filter = 0, output = 0;
  int64_t stride = 1, dilation = 1;
  int64_t before = 0;  // zeros of padding in front

  // The element below tap k at position i; -1 in the padding.
  int64_t elementBelow(int64_t i, int64_t k) const {
    const int64_t element = i * stride - before + k * dilation;
    return element >= 0 && element < input ? element : int64_t{-1};
  }
  // The position at which tap k is above the element; -1 where there is none.
  int64_t positionAbove(int64_t element, int64_t k) const {
    const int64_t distance = element + before - k * dilation;
    const int64_t position = distance / stride;
    return distance >= 0 && distance % stride == 0 && position < output ? position : int64_t{-1};
  }
};

using Extents = std::array<Extent, 3>;

// Arguments of both operations: data, filter, bias (may be omitted), then from this index on the
// padding code, three strides and three dilations, each as depth, height, width, and the
// activation.
inline constexpr size_t kConv3dPadding = 3;

// For validate(): data, filter and bias are floating-point numbers of one type, the arguments from
// kConv3dPadding to the activation INT32, and the output is like the data.
inline constexpr size_t kConv3dActivation = 10;
Status validateConv3d(const Signature& signature);

// `sizes` and `filter` are depth, height and width of the volume and of the filter. kBadData for
// other codes of padding, strides and dilations below 1, and a filter that does not fit.
Result<Extents> parseExtents(const OperationContext& context, std::span<const uint32_t, 3> sizes,
                             std::span<const uint32_t, 3> filter);

}  // namespace hearth::ops
