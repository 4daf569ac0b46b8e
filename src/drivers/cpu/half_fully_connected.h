// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/fully_connected.h"

namespace hearth::cpu {

// A float32 layer whose weights are a float16 constant behind a conversion, on a product of ours
// that keeps them in float16. False when it is not one, or the CPU lacks the instructions.
Result<bool> addHalfFullyConnected(PlanBuilder* builder, const FullyConnected& layer);

}  // namespace hearth::cpu
