// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "ops/operation.h"

namespace hearth::cpu {

// Which values of the plan the tensors of an operation are; kNone for constants (which the context
// holds already) and omitted arguments.
struct ReferenceArguments {
  static constexpr ValueId kNone = UINT32_MAX;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// Gives the tensors of `context` the addresses of their values.
void bindArguments(std::span<void* const> addresses, const ReferenceArguments& arguments,
                   ops::OperationContext* context);

// A kernel of src/ops as a step of a plan. `context` has all shapes.
Result<std::unique_ptr<Kernel>> makeReferenceKernel(ops::OperationContext context,
                                                    ReferenceArguments arguments);

}  // namespace hearth::cpu
