// SPDX-License-Identifier: Apache-2.0
// Norms of float32 tensors on kernels of ours; XNNPACK has none.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Both return false for types other than float32.
Result<bool> lowerRmsNorm(PlanBuilder* builder);
Result<bool> lowerGroupNorm(PlanBuilder* builder);

}  // namespace hearth::cpu
