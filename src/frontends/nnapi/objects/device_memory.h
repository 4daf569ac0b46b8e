// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>

#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/memory.h"

namespace hearth::nnapi {

// The roles that a device memory may have, and owners of their compilations.
struct DeviceMemoryRoles {
  std::set<ArgumentRole> roles;
  std::set<std::shared_ptr<const runtime::Compilation>> compiled;
};

// A device memory in a buffer of a driver, or in shared memory of the runtime. `operand` describes
// the tensor as the descriptor knows it; if its size is unknown, shared memory grows with the
// values that it gets. The memory has no value until an execution or a copy succeeds.
std::shared_ptr<Memory> deviceMemory(std::unique_ptr<hal::Buffer> buffer, graph::Operand operand,
                                     DeviceMemoryRoles roles);
std::shared_ptr<Memory> deviceMemory(memory::PoolRef pool, graph::Operand operand,
                                     DeviceMemoryRoles roles);

}  // namespace hearth::nnapi
