// SPDX-License-Identifier: Apache-2.0
// Functions of single float32 numbers on kernels of ours: XNNPACK computes them one at a time.
#pragma once

#include "drivers/cpu/plan_builder.h"

namespace hearth::cpu {

// All are false for types other than float32.
Result<bool> lowerGelu(PlanBuilder* builder);
Result<bool> lowerHardSwish(PlanBuilder* builder);
Result<bool> lowerExp(PlanBuilder* builder);
Result<bool> lowerSin(PlanBuilder* builder);
Result<bool> lowerCos(PlanBuilder* builder);

}  // namespace hearth::cpu
