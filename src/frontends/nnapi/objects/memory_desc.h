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

// What a device memory is for: a set of roles that agree about the tensor. All changes after
// finish() are kBadState.
class MemoryDesc {
 public:
  Status addRole(const Compilation& compilation, bool isInput, uint32_t index, float frequency);
  Status setDimensions(std::span<const uint32_t> dimensions);
  Status finish();

  // A memory without value, from the one device that has all roles, or shared memory where that is
  // allowed: for devices that compute in the CPU's memory, and for roles of which none comes from a
  // compilation with a list of devices. kBadState before finish(), kOpFailed when no memory is
  // possible.
  Result<std::shared_ptr<Memory>> createMemory() const;

 private:
  Status requireOpen() const;
  Result<std::unique_ptr<hal::Buffer>> allocate(const std::shared_ptr<hal::Device>& device,
                                                const std::vector<hal::BufferRole>& roles) const;

  bool isFinished_ = false;
  // The tensor as all roles together know it; meaningful with a role or known dimensions.
  graph::Operand operand_;
  // The roles with what keeps them alive; the value is how often the memory is used in it.
  std::map<ArgumentRole, float> roles_;
  std::set<std::shared_ptr<const runtime::Compilation>> compiled_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksMemoryDesc final : hearth::nnapi::MemoryDesc {};
