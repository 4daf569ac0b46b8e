// SPDX-License-Identifier: Apache-2.0
// Attention on kernels of ours: XNNPACK has none that reads keys and values in place, in the cache
// of a language model.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/scaled_dot_product_attention.h"

namespace hearth::cpu {

// Operands of one attention; `mask` is UINT32_MAX if there is none.
struct Attention {
  uint32_t queries = 0, keys = 0, values = 0, mask = UINT32_MAX, output = 0;
  ops::AttentionParameters parameters;
};

// Adds the node; false for types other than float32.
Result<bool> addAttention(PlanBuilder* builder, const Attention& attention);

}  // namespace hearth::cpu
