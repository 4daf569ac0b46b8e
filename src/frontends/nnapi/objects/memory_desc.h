// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/memory.h"

namespace hearth::nnapi {

// Describes a device memory by a set of roles that agree about the tensor. All changes after
// finish() fail with kBadState.
class MemoryDesc {
 public:
  Status addRole(const Compilation& compilation, bool isInput, uint32_t index, float frequency);
  Status setDimensions(std::span<const uint32_t> dimensions);
  Status finish();

  // Creates a memory without value. The one device that has all roles allocates it; otherwise it is
  // shared memory, if the device computes in the CPU's memory, or if no role belongs to a
  // compilation with a list of devices. kBadState before finish(), kOpFailed when no memory is
  // possible.
  Result<std::shared_ptr<Memory>> createMemory() const;

 private:
  Status requireOpen() const;
  Result<std::unique_ptr<hal::Buffer>> allocate(const std::shared_ptr<hal::Device>& device,
                                                const std::vector<hal::BufferRole>& roles) const;

  bool isFinished_ = false;
  // The tensor, combined from all roles; meaningful once there is a role or a known dimension.
  graph::Operand operand_;
  // The roles, with the frequency of use of the memory in each; compiled_ keeps them alive.
  std::map<ArgumentRole, float> roles_;
  std::set<std::shared_ptr<const runtime::Compilation>> compiled_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksMemoryDesc final : hearth::nnapi::MemoryDesc {};
