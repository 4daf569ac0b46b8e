// SPDX-License-Identifier: Apache-2.0
// Weights of 8 or 4 bits of layers with float32 activations, as XNNPACK takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "drivers/cpu/lowering/channel_parts.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

struct HybridWeights {
  // TENSOR_INT4: every number of 4 bits is one of 8 bits. Packed as those, they run on kernels that
  // are right on every CPU, which XNNPACK's own for 4 bits are not.
  bool isInt4 = false;
  const graph::Operand* operand = nullptr;
};

// What the layer's constants are; none when the layer is no hybrid one, or one that XNNPACK does
// not take. `bias` may be UINT32_MAX. Scales of blocks are the caller's affair.
std::optional<HybridWeights> hybridWeights(PlanBuilder* builder, uint32_t input, uint32_t filter,
                                           uint32_t bias, uint32_t output, size_t outputs);

// `count` numbers of 4 bits, two in each byte, as one byte each, with kReadSlack bytes behind them.
std::vector<int8_t> widenInt4(const uint8_t* pairs, size_t count);

}  // namespace hearth::cpu
