// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/activation.h"

namespace hearth::cpu {

// Later operations on the float32 result of the current one, element by element, which a kernel of
// the current one may compute before it writes: the addition of a tensor, then a clamp or PRELU.
struct Epilogue {
  std::vector<uint32_t> operations;
  std::optional<uint32_t> addend;  // operand of the result's shape
  ops::ActivationRange range{};    // of the sum
  std::optional<uint32_t> slopes;  // operand: what negative sums of a channel are multiplied by
  uint32_t output = 0;             // operand of the last one
};

// The operations that alone read the only output of the current operation, one of the other; its
// last dimension is that of channels, and its activation is `activation`. None where there is
// another reader, the output is clamped already, shapes differ, or what else they read is not known
// yet. Who uses them calls PlanBuilder::takeOver() for each.
Result<std::optional<Epilogue>> findEpilogue(PlanBuilder* builder, ops::FusedActivation activation);

}  // namespace hearth::cpu
