// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/plan.h"
#include "graph/model.h"

namespace hearth::vulkan {

// Whether this driver runs an operation: kUnsupported with a sentence where not.
struct CheckedLowering {
  Status status;
  std::set<std::string> shaders;  // that it would run
};

// For each operation of the main subgraph. The model has passed graph::validate() and the
// operations that `isValid` names have passed their own validation; the others count as unsupported
// without a look at them.
std::vector<CheckedLowering> checkLowerings(const graph::Model& model,
                                            const std::vector<bool>& isValid,
                                            const GpuFacts& facts);

// The plan of a model that has passed graph::validate() and ops::validateOperations(). It refers to
// constants of the model. `limit` bounds the arena in bytes (0 = not). Errors: kUnsupported as
// checkLowerings(), kOutOfMemory above the limit.
Result<Plan> buildPlan(const graph::Model& model, const GpuFacts& facts, uint64_t limit);

}  // namespace hearth::vulkan
