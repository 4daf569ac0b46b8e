// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/portable/convolution.h"

namespace hearth::cpu {

// Gathers the inputs under the windows of a convolution, window after window, which makes the
// convolution a matrix product; of several groups, those of one group. Thread-safe.
class Im2col {
 public:
  // An element of the input has `elementBytes` bytes; every byte of padding is `fill`.
  Im2col(const Convolution& convolution, size_t elementBytes, uint8_t fill)
      : Im2col(convolution, elementBytes, fill, convolution.top, convolution.left) {}
  // The same with `top` rows and `left` columns of padding in place of the convolution's. Where
  // they are negative, the first window begins inside the image.
  Im2col(const Convolution& convolution, size_t elementBytes, uint8_t fill, int64_t top,
         int64_t left);

  // Bytes of one window; its elements are in the filter's order.
  size_t windowBytes() const { return rows_ * rowBytes_; }
  // Number of windows of all images.
  size_t windowCount() const { return batch_ * outputHeight_ * outputWidth_; }

  // Writes the windows [first, last) of the tensor `source` to `target`, one after another.
  void gather(const uint8_t* source, size_t first, size_t last, uint8_t* target) const {
    gather(source, first, last, target, windowBytes());
  }
  // The same with `stride` >= windowBytes() bytes from one window to the next.
  void gather(const uint8_t* source, size_t first, size_t last, uint8_t* target,
              size_t stride) const;
  // The same for the channels of one group.
  void gatherGroup(size_t group, const uint8_t* source, size_t first, size_t last,
                   uint8_t* target) const;

 private:
  // Gathers `count` windows of one line of the output, from `first` on. Copies kBytes bytes for
  // each row of a window where there is room, or exactly the row's bytes if kBytes is 0.
  template <size_t kBytes>
  void gatherLine(const uint8_t* source, size_t line, size_t first, size_t count, uint8_t* target,
                  size_t stride, const uint8_t* end) const;
  void gatherRow(const uint8_t* row, int64_t x, uint8_t* target) const;
  // Gathers the place `row`, `column` of `count` windows of one line, from `first` on.
  void gatherPlace(const uint8_t* source, size_t line, size_t first, size_t count, size_t row,
                   size_t column, uint8_t* target) const;

  size_t batch_, outputHeight_, outputWidth_, inputHeight_, inputWidth_;
  size_t rows_, columns_;
  size_t channels_;  // bytes of one pixel of the input, of one group
  size_t pixel_;     // of all groups
  size_t rowBytes_;
  int64_t strideHeight_, strideWidth_, dilationHeight_, dilationWidth_, top_, left_;
  uint8_t fill_;
};

}  // namespace hearth::cpu
