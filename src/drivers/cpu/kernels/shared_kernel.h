// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "ops/operation.h"

namespace hearth::cpu {

// The values of the execution graph that are the tensors of an operation, by position. kNone stands
// for omitted arguments and for constants, which the context holds already.
struct OperationArguments {
  static constexpr ValueId kNone = UINT32_MAX;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// Sets the addresses of the tensors in `context` to those of their values.
void bindArguments(std::span<void* const> addresses, const OperationArguments& arguments,
                   ops::OperationContext* context);

// Makes a step of the shared kernel of an operation, that of src/ops, which reports call
// `reference`. `context` has all shapes and the constants.
Result<std::unique_ptr<Kernel>> makeSharedKernel(ops::OperationContext context,
                                                 OperationArguments arguments);

}  // namespace hearth::cpu
