// SPDX-License-Identifier: Apache-2.0
// Attention on kernels of ours: XNNPACK has none that reads keys and values in place, in the cache
// of a language model.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/cpu/kernels/attention_kernel.h"
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

// Says which row of a mask of these dimensions each place reads; its last dimension is 1 or that of
// the keys.
void setMask(AttentionLayout* layout, const graph::Dimensions& mask,
             std::vector<uint32_t> rowsByPlace);

// Adds the node of an attention.
void addAttentionNode(PlanBuilder* builder, AttentionLayout layout);

}  // namespace hearth::cpu
