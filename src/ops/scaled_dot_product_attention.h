// SPDX-License-Identifier: Apache-2.0
// SCALED_DOT_PRODUCT_ATTENTION of the extension: its arguments, parsed.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Queries are [batches, queries, heads, size], keys [batches, keys, groups, size], values
// [batches, keys, groups, valueSize], the output is [batches, queries, heads, valueSize]. Each
// group of heads / groups neighbouring heads shares keys and values.
struct AttentionParameters {
  uint32_t batches = 0, queries = 0, heads = 0, size = 0;
  uint32_t keys = 0, groups = 0, valueSize = 0;
  float scale = 1.0f;     // of the products of queries and keys
  float logitCap = 0.0f;  // above 0: products become cap * tanh(product / cap)
};

// Reads and checks every argument; shapes of inputs must be known. Errors as parseConv2d().
Result<AttentionParameters> parseAttention(const OperationContext& context);

}  // namespace hearth::ops
