// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_dwconv.h"

namespace hearth::cpu {

// Finds the inputs under the windows of a depthwise convolution, for products that compute
// kDepthwiseTile outputs of a line together. With dilations these outputs lie as far apart as the
// columns of a window, so that windows share columns. Windows have at most kMostDepthwiseKernel
// rows and columns; each group is one channel of input and output. Thread-safe.
template <typename Element>
class DwconvWindows {
 public:
  DwconvWindows(const Convolution& geometry, Element padding)
      : geometry_(geometry),
        padding_(geometry.groups, padding),
        step_(geometry.dilationWidth),
        hasTiles_((geometry.strideWidth == 1 ||
                   (step_ == 1 && geometry.strideWidth <= kMostDepthwiseStride)) &&
                  geometry.outputWidth >= kDepthwiseTile * step_) {}

  // Number of output lines of all images.
  size_t lines() const { return geometry_.batch * geometry_.outputHeight; }

  using Rows = std::array<const Element*, kMostDepthwiseKernel>;

  // The first columns of the rows under the windows of a line; null in the padding.
  Rows rowsOf(const Element* source, size_t line) const {
    const Convolution& g = geometry_;
    const size_t lineSize = g.inputWidth * g.groups;
    const Element* const image = source + line / g.outputHeight * g.inputHeight * lineSize;
    const auto firstY = static_cast<int64_t>(line % g.outputHeight * g.strideHeight) - g.top;
    Rows rows{};
    for (uint32_t y = 0; y < g.kernelHeight; ++y) {
      const int64_t inputY = firstY + int64_t{y} * g.dilationHeight;
      if (inputY >= 0 && inputY < static_cast<int64_t>(g.inputHeight))
        rows[y] = image + static_cast<size_t>(inputY) * lineSize;
    }
    return rows;
  }

  // Calls one(columns, x) for the outputs from `begin` to `end` of a line.
  template <typename One>
  void forOutputs(const Rows& rows, size_t begin, size_t end, const One& one) const {
    Columns columns;
    for (size_t x = begin; x < end; ++x) {
      findColumns(rows, x, geometry_.kernelWidth, geometry_.dilationWidth, &columns);
      one(columns.data(), x);
    }
  }

  // Calls tile(columns, x, step) for kDepthwiseTile outputs of the line at a time, those at x, x +
  // step and so on; it may compute some outputs twice. Where the geometry allows no tiles, calls
  // one(columns, x) for each output. columns[c * kernelHeight + y] points to the channels of row y
  // of column c.
  template <typename One, typename Tile>
  void forLine(const Element* source, size_t line, const One& one, const Tile& tile) const {
    const Convolution& g = geometry_;
    const Rows rows = rowsOf(source, line);
    if (!hasTiles_) return forOutputs(rows, 0, g.outputWidth, one);
    Columns columns;
    const size_t count = depthwiseTileColumns(g.kernelWidth, g.strideWidth);
    const size_t block = kDepthwiseTile * step_;
    for (size_t first = 0; first < g.outputWidth; first += block) {
      // The last tiles begin early and compute some outputs again.
      first = std::min(first, g.outputWidth - block);
      for (size_t x = first; x < first + step_; ++x) {
        findColumns(rows, x, count, step_, &columns);
        tile(columns.data(), x, step_);
      }
    }
  }

 private:
  static constexpr size_t kMostColumns =
      (kDepthwiseTile - 1) * kMostDepthwiseStride + kMostDepthwiseKernel;

  using Columns = std::array<const Element*, kMostColumns * kMostDepthwiseKernel>;

  // Finds `count` columns, `step` inputs apart, from the first column of the output `x` on.
  void findColumns(const Rows& rows, size_t x, size_t count, size_t step, Columns* columns) const {
    const Convolution& g = geometry_;
    const Element** at = columns->data();
    auto inputX = static_cast<int64_t>(x * g.strideWidth) - g.left;
    for (size_t c = 0; c < count; ++c, inputX += static_cast<int64_t>(step)) {
      const bool isInside = inputX >= 0 && inputX < static_cast<int64_t>(g.inputWidth);
      for (size_t y = 0; y < g.kernelHeight; ++y)
        *at++ = isInside && rows[y] != nullptr ? rows[y] + static_cast<size_t>(inputX) * g.groups
                                               : padding_.data();
    }
  }

  const Convolution geometry_;
  const std::vector<Element> padding_;
  const size_t step_;  // between the outputs of a tile
  const bool hasTiles_;
};

}  // namespace hearth::cpu
