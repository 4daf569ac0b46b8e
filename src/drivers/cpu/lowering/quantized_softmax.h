// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node for SOFTMAX over the last axis of an 8-bit tensor, on a kernel of ours: XNNPACK
// lacks the signed type. False for other types.
Result<bool> addQuantizedSoftmax(PlanBuilder* builder, uint32_t input, uint32_t output, float beta);

}  // namespace hearth::cpu
