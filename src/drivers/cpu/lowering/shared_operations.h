// SPDX-License-Identifier: Apache-2.0
// Operations that run on the kernels of src/ops, which are written for speed (whole rows, threads):
// moving memory, integers, comparisons, look-ups.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds a node with the kernel of src/ops; always true.
Result<bool> lowerShared(PlanBuilder* builder);

// Element-wise operations on types whose kernels read elements as they are stored; false for
// others.
Result<bool> lowerNumbers(PlanBuilder* builder);
// The same, and 8-bit types where both inputs have the same quantisation.
Result<bool> lowerComparison(PlanBuilder* builder);

// Writes the update into the data's own memory where no later node reads the data.
Result<bool> lowerDynamicUpdateSlice(PlanBuilder* builder);

// Reads tables of 8 and 4 bits and of float16 in place, even where the model converts them first.
Result<bool> lowerEmbeddingLookup(PlanBuilder* builder);

}  // namespace hearth::cpu
