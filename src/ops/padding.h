// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the two spatial dimensions of an image: what convolutions and pools
// share. Implicit padding is resolved to numbers here, as NNAPI and TFLite define it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Zeros (convolution) or missing elements (pools) around an image; never negative.
struct Padding2d {
  int32_t top = 0, bottom = 0, left = 0, right = 0;
  friend bool operator==(const Padding2d&, const Padding2d&) = default;
};

// A resolved window: every number is in its legal range.
struct Window2d {
  Padding2d padding;
  bool isSamePadding = false;  // the model said SAME; `padding` holds what that means here
  int32_t strideHeight = 1, strideWidth = 1;
  int32_t dilationHeight = 1, dilationWidth = 1;
  int32_t filterHeight = 1, filterWidth = 1;
};

// Dimensions of a tensor of images, in any layout.
struct ImageShape {
  uint32_t batches = 0, height = 0, width = 0, channels = 0;

  static ImageShape of(const Dimensions& dimensions, bool isNchw) {
    return isNchw ? ImageShape{dimensions[0], dimensions[2], dimensions[3], dimensions[1]}
                  : ImageShape{dimensions[0], dimensions[1], dimensions[2], dimensions[3]};
  }
  Dimensions dimensions(bool isNchw) const {
    return isNchw ? Dimensions{batches, channels, height, width}
                  : Dimensions{batches, height, width, channels};
  }
};

// Offset of an element of such a tensor, counted in elements.
struct ImageLayout {
  size_t batchStride = 0;
  size_t rowStride = 0;
  size_t columnStride = 0;
  size_t channelStride = 0;

  ImageLayout(const ImageShape& shape, bool isNchw)
      : batchStride(size_t{shape.height} * shape.width * shape.channels),
        rowStride(isNchw ? shape.width : size_t{shape.width} * shape.channels),
        columnStride(isNchw ? 1 : shape.channels),
        channelStride(isNchw ? size_t{shape.height} * shape.width : 1) {}
  size_t offset(size_t batch, size_t row, size_t column) const {
    return batch * batchStride + row * rowStride + column * columnStride;
  }
};

// Fills window->padding and isSamePadding from the scalar inputs that begin at `first`: one
// implicit padding code (SAME 1, VALID 2), or explicit left, right, top, bottom. The other members
// must be set. With `isTransposed` the window is that of a transposed convolution and `image` is
// its output; there a stride may leave columns behind the last window uncovered. kBadData for
// unknown codes, negative numbers, and a window larger than the padded image.
Status parsePadding(const OperationContext& context, size_t first, bool isImplicit,
                    const ImageShape& image, Window2d* window);

// Reads strides (width first, as NNAPI has them) at `strides`, and at `dilations` the optional
// dilation pair; 0 for `dilations` means that there is none. kBadData unless all are positive.
Status parseStrides(const OperationContext& context, size_t strides, size_t dilations,
                    Window2d* window);

// Sets the filter size from dimensions of a filter or from scalars. kBadData unless positive.
Status setFilterSize(const OperationContext& context, int64_t height, int64_t width,
                     Window2d* window);

// Number of window positions over the padded image; parsePadding() filled `window` for that image.
uint32_t outputHeight(const Window2d& window, uint32_t imageHeight);
uint32_t outputWidth(const Window2d& window, uint32_t imageWidth);

}  // namespace hearth::ops
