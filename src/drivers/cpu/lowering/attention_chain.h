// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/batch_matmul.h"

namespace hearth::cpu {

// Adds one node for attention that is written out: the product of queries and keys, a scale, a cap
// (TANH between two factors), the sum with a mask or a choice by one of booleans, SOFTMAX, and the
// product with the values, which is the current operation, of these parameters. Scale, cap, mask
// and changes of shape may be absent. The node replaces those of the
// other operations. False where there is no such chain, something else reads a part of it, or its
// types and layouts are others than float32, whole keys, and values that are whole or transposed.
Result<bool> addAttentionChain(PlanBuilder* builder, const ops::BatchMatmulParameters& last);

}  // namespace hearth::cpu
