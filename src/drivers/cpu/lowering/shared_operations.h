// SPDX-License-Identifier: Apache-2.0
// Operations whose kernels in src/ops are written for speed (whole rows, threads): moving memory,
// integers, comparisons, look-ups. They run on them here, too.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// The operation as src/ops has it.
Result<bool> lowerShared(PlanBuilder* builder);

// Element-wise kernels, for the types whose elements they read as they are stored; false for
// others.
Result<bool> lowerNumbers(PlanBuilder* builder);
// The same, and 8-bit types where both inputs have one quantisation.
Result<bool> lowerComparison(PlanBuilder* builder);

// The update goes into the data's own memory where nobody reads them afterwards.
Result<bool> lowerDynamicUpdateSlice(PlanBuilder* builder);

// Tables of 8 and 4 bits and of float16 stay as they are, also where the model converts them first.
Result<bool> lowerEmbeddingLookup(PlanBuilder* builder);

}  // namespace hearth::cpu
