// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/operation.h"

namespace hearth::cpu {

// What the parsers of src/ops read of any operation of the subgraph that is being planned, with the
// shapes that are known so far.
ops::OperationContext contextOf(const PlanBuilder& builder, uint32_t operation);

}  // namespace hearth::cpu
