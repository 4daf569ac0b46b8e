// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// BATCH_MATMUL on XNNPACK; false for types other than float32, for a transposed left matrix, and
// where the left matrix would have to be repeated.
Result<bool> lowerBatchMatmul(PlanBuilder* builder);

}  // namespace hearth::cpu
