// SPDX-License-Identifier: Apache-2.0
// Functions of single float32 numbers on kernels of ours. XNNPACK lacks them, computes them one
// number at a time, or does not prefetch its input.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// All return false for types other than float32.
Result<bool> lowerGelu(PlanBuilder* builder);
Result<bool> lowerHardSwish(PlanBuilder* builder);
Result<bool> lowerExp(PlanBuilder* builder);
Result<bool> lowerSign(PlanBuilder* builder);
Result<bool> lowerTanh(PlanBuilder* builder);
Result<bool> lowerElu(PlanBuilder* builder);
Result<bool> lowerSin(PlanBuilder* builder);
Result<bool> lowerCos(PlanBuilder* builder);

}  // namespace hearth::cpu
