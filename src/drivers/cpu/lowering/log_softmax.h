// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// LOG_SOFTMAX of float32 and 8-bit tensors over the last dimension; false for others.
Result<bool> lowerLogSoftmax(PlanBuilder* builder);

}  // namespace hearth::cpu
