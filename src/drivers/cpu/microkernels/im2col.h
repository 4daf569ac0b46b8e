// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/convolution.h"

namespace hearth::cpu {

// The inputs under the windows of a convolution with one group, window after window: a convolution
// becomes a product of matrices. Thread-safe.
class Im2col {
 public:
  // An input has `elementBytes`; each byte of padding is `fill`.
  Im2col(const Convolution& convolution, size_t elementBytes, uint8_t fill)
      : Im2col(convolution, elementBytes, fill, convolution.top, convolution.left) {}
  // The same with `top` rows and `left` columns of padding before the first window; where these are
  // negative, that begins within the image.
  Im2col(const Convolution& convolution, size_t elementBytes, uint8_t fill, int64_t top,
         int64_t left);

  // Of one window, in the filter's order.
  size_t windowBytes() const { return rows_ * rowBytes_; }
  // Windows of all images.
  size_t windowCount() const { return batch_ * outputHeight_ * outputWidth_; }

  // Writes the windows [first, last) of the tensor `source` to `target`, one after another.
  void gather(const uint8_t* source, size_t first, size_t last, uint8_t* target) const {
    gather(source, first, last, target, windowBytes());
  }
  // The same, with `stride` bytes, windowBytes() at least, from one window to the next.
  void gather(const uint8_t* source, size_t first, size_t last, uint8_t* target,
              size_t stride) const;

 private:
  // `count` windows of one line of the output, the first at `first`; a row of a window is copied as
  // kBytes bytes, or as it is when that is 0.
  template <size_t kBytes>
  void gatherLine(const uint8_t* source, size_t line, size_t first, size_t count, uint8_t* target,
                  size_t stride, const uint8_t* end) const;
  void gatherRow(const uint8_t* row, int64_t x, uint8_t* target) const;

  size_t batch_, outputHeight_, outputWidth_, inputHeight_, inputWidth_;
  size_t rows_, columns_;
  size_t channels_;  // bytes of one input
  size_t rowBytes_;
  int64_t strideHeight_, strideWidth_, dilationHeight_, dilationWidth_, top_, left_;
  uint8_t fill_;
};

}  // namespace hearth::cpu
