// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/transpose_parts.h"

namespace hearth::cpu {
namespace {

std::vector<TransposePart> partsOf(uint32_t outputs, int32_t stride, int32_t filter,
                                   int32_t padding) {
  std::vector<TransposePart> parts;
  for (int32_t first = 0; first < stride && first < static_cast<int64_t>(outputs); ++first) {
    TransposePart part;
    part.first = static_cast<size_t>(first);
    part.count = (outputs - part.first - 1) / static_cast<size_t>(stride) + 1;
    // Output o reads input (o + padding - tap) / stride where that is a whole number.
    const int64_t shifted = int64_t{first} + padding;
    const int64_t firstTap = shifted % stride;
    if (firstTap < filter) {
      const int64_t more = (filter - 1 - firstTap) / stride;
      part.taps = static_cast<size_t>(more + 1);
      part.lastTap = static_cast<size_t>(firstTap + more * stride);
      part.before = (static_cast<int64_t>(part.lastTap) - shifted) / stride;
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::vector<TransposePart> transposePartsOfRows(const ops::TransposeConv2dParameters& geometry) {
  const ops::Window2d& w = geometry.window;
  return partsOf(geometry.output.height, w.strideHeight, w.filterHeight, w.padding.top);
}

std::vector<TransposePart> transposePartsOfColumns(const ops::TransposeConv2dParameters& geometry) {
  const ops::Window2d& w = geometry.window;
  return partsOf(geometry.output.width, w.strideWidth, w.filterWidth, w.padding.left);
}

bool hasFewTransposeParts(const ops::TransposeConv2dParameters& geometry) {
  constexpr int64_t kMost = 64;
  return int64_t{geometry.window.strideHeight} * geometry.window.strideWidth <= kMost;
}

}  // namespace hearth::cpu
