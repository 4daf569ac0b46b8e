// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/activation.h"

namespace hearth::cpu {

// A later addition of a float32 tensor to the result of the current operation, which a kernel of
// the current one may make before it writes the sum.
struct FusedAddition {
  uint32_t operation = 0;
  uint32_t addend = 0, output = 0;  // operands of one shape
  ops::ActivationRange range{};     // of the sum
};

// The addition that alone reads the only output of the current operation, whose activation is
// `activation`. None where there is another reader, the output is clamped, the shapes differ, or
// the addend is not known yet. Who uses it calls PlanBuilder::takeOver().
Result<std::optional<FusedAddition>> findFusedAddition(PlanBuilder* builder,
                                                       ops::FusedActivation activation);

}  // namespace hearth::cpu
