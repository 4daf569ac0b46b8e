// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV_2D: its arguments, parsed. The filter is [outputChannels, filterHeight,
// filterWidth, inputChannels], in either layout of the data.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/window_parameters.h"

namespace hearth::ops {

// The window is that of the convolution which this operation transposes: it slides over the output
// image, and its position (y, x) belongs to element (y, x) of the input image.
struct TransposeConv2dParameters : WindowParameters {  // no dilation
  // Rows and columns at the end of the output that lie beyond the last window position:
  // output = (input - 1) * stride + filter - padding + adjustment, less than the stride.
  uint32_t adjustmentHeight = 0;
  uint32_t adjustmentWidth = 0;
};

// Reads and checks every argument; shapes of inputs must be known, and so must the values of the
// output shape argument (else the error is needsRuntimeValue()'s). Errors as parseConv2d().
Result<TransposeConv2dParameters> parseTransposeConv2d(const OperationContext& context);

}  // namespace hearth::ops
