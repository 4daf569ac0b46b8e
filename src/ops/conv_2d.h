// SPDX-License-Identifier: Apache-2.0
// CONV_2D, GROUPED_CONV_2D and DEPTHWISE_CONV_2D: their arguments, parsed. The filters are
// [outputChannels, filterHeight, filterWidth, groupInputChannels], for the depthwise one
// [1, filterHeight, filterWidth, outputChannels], in either layout of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/window_parameters.h"

namespace hearth::ops {

struct Conv2dParameters : WindowParameters {
  uint32_t groups = 1;
  uint32_t groupInputChannels = 0;
  uint32_t groupOutputChannels = 0;  // for DEPTHWISE_CONV_2D the depth multiplier
};

// Reads and checks every argument; shapes of inputs must be known. Beyond NNAPI, as in TFLite: a
// CONV_2D is grouped if the input has a multiple of the filter's channels. Errors: kBadData, and
// kUnsupported for parameters that are no constants and have no value yet.
Result<Conv2dParameters> parseConv2d(const OperationContext& context);
Result<Conv2dParameters> parseGroupedConv2d(const OperationContext& context);
Result<Conv2dParameters> parseDepthwiseConv2d(const OperationContext& context);

// A CONV_2D whose window does not depend on the size of its input.
struct FixedConv2d {
  Window2d window;
  size_t activation = 0;  // index of the activation among the inputs
};

// Reads the window of a CONV_2D in NHWC layout; dimensions of the input need not be known. None for
// other layouts, for padding that depends on the input's size (SAME with a stride, unless the
// window is a single pixel), and for arguments or dimensions of the filter that are not known yet.
// The numbers are those that parseConv2d() gives, which also checks them against the input.
std::optional<FixedConv2d> findFixedConv2d(const OperationContext& context);

}  // namespace hearth::ops
