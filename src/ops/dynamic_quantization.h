// SPDX-License-Identifier: Apache-2.0
// Hybrid layers: layers with float32 activations and weights of 8 or 4 bits. As in TFLite, such a
// layer quantises the activations to 8 bits while it runs, with a scale and a zero point for each
// row, and multiplies integers.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/operation.h"

namespace hearth::ops {

// Whether inputs 0 and 1 of a layer make it hybrid.
bool isHybrid(const OperationContext& context);

// Rounds each row of `rowSize` values to 256 steps from its least to its greatest value, 0
// included, by XNNPACK's rule. A row with an infinity or NaN stays as it is.
std::vector<float> roundToDynamicSteps(const float* values, size_t rows, size_t rowSize);

}  // namespace hearth::ops
