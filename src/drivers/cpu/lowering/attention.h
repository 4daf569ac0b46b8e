// SPDX-License-Identifier: Apache-2.0
// Attention on kernels of ours: XNNPACK has none that leaves keys and values where the cache of a
// language model holds them.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/scaled_dot_product_attention.h"

namespace hearth::cpu {

// Operands of one attention; `mask` is UINT32_MAX when there is none.
struct Attention {
  uint32_t queries = 0, keys = 0, values = 0, mask = UINT32_MAX, output = 0;
  ops::AttentionParameters parameters;
};

// Adds the node; false for types other than float32.
Result<bool> addAttention(PlanBuilder* builder, const Attention& attention);

}  // namespace hearth::cpu
