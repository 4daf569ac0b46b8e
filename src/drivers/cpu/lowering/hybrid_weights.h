// SPDX-License-Identifier: Apache-2.0
// Weights of 8 or 4 bits of layers with float32 activations, in the form that XNNPACK takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

struct HybridWeights {
  // Whether the type is TENSOR_INT4. Such numbers are widened to 8 bits before packing, because
  // XNNPACK's kernels for 4 bits are not right on every CPU.
  bool isInt4 = false;
  const graph::Operand* operand = nullptr;
};

// Describes the layer's weights; none when the layer is not hybrid, or when XNNPACK does not take
// it. `bias` may be UINT32_MAX. The caller deals with block scales.
std::optional<HybridWeights> hybridWeights(PlanBuilder* builder, uint32_t input, uint32_t filter,
                                           uint32_t bias, uint32_t output, size_t outputs);

// Widens `count` 4-bit numbers, two in each byte, to one byte each, with kReadSlack bytes behind.
std::vector<int8_t> widenInt4(const uint8_t* pairs, size_t count);

}  // namespace hearth::cpu
