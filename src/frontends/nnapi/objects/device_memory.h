// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>

#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/memory.h"

namespace hearth::nnapi {

// What a device memory may be used for, and what keeps those compilations alive.
struct DeviceMemoryRoles {
  std::set<ArgumentRole> roles;
  std::set<std::shared_ptr<const runtime::Compilation>> compiled;
};

// Memory that a driver allocated, or that the runtime has in its place. `operand` is the tensor as
// the descriptor knows it. Without value until an execution or a copy succeeds.
std::shared_ptr<Memory> deviceMemory(std::unique_ptr<hal::Buffer> buffer, graph::Operand operand,
                                     DeviceMemoryRoles roles);
std::shared_ptr<Memory> deviceMemory(memory::PoolRef pool, graph::Operand operand,
                                     DeviceMemoryRoles roles);

}  // namespace hearth::nnapi
