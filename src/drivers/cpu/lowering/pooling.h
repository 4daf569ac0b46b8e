// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling on XNNPACK; the average of 8-bit numbers on a kernel of ours.
#pragma once

#include "drivers/cpu/lowering/pooling_layer.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node; false for other types, and for forms that XNNPACK lacks (1x1 windows).
Result<bool> addPooling(PlanBuilder* builder, const Pooling& pooling);

}  // namespace hearth::cpu
