// SPDX-License-Identifier: Apache-2.0
// A transposed convolution as several convolutions without strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// A part of the outputs along one dimension: those that lie a stride apart. They are a convolution
// of the input with a stride of 1, over every stride-th tap of the filter, the last one first.
struct TransposePart {
  size_t first = 0, count = 0;   // outputs
  size_t lastTap = 0, taps = 0;  // `taps` may be 0 where the filter is smaller than the stride
  int64_t before = 0;            // positions of the first window that lie before the image
};

// The parts along the two dimensions. Each combination of a part of rows and a part of columns is
// one convolution.
std::vector<TransposePart> transposePartsOfRows(const ops::TransposeConv2dParameters& geometry);
std::vector<TransposePart> transposePartsOfColumns(const ops::TransposeConv2dParameters& geometry);

// Each combination takes memory, and with a filter of few taps many have nothing to do: whether
// there are few enough.
bool hasFewTransposeParts(const ops::TransposeConv2dParameters& geometry);

}  // namespace hearth::cpu
