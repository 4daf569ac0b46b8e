// SPDX-License-Identifier: Apache-2.0
// Hybrid layers: float32 activations meet weights of 8 or 4 bits. As in TFLite, the activations are
// quantised to 8 bits while the layer runs, with a scale and a zero point for each row, so that the
// products are those of integers.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/operation.h"

namespace hearth::ops {

// Whether inputs 0 and 1 of a layer make it hybrid.
bool isHybrid(const OperationContext& context);

// Rounds each row of `rowSize` values to the 256 steps from its least to its greatest value, 0
// included, which is XNNPACK's rule; a row with an infinity or NaN stays as it is.
std::vector<float> roundToDynamicSteps(const float* values, size_t rows, size_t rowSize);

}  // namespace hearth::ops
