// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling on XNNPACK; the average of 8-bit numbers on a kernel of ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/plan_builder.h"
#include "ops/activation.h"

namespace hearth::cpu {

struct Pooling {
  uint32_t input = 0, output = 0;  // operands, NHWC
  bool isMaximum = false;
  ops::FusedActivation activation = ops::FusedActivation::kNone;
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
  uint32_t filterHeight = 1, filterWidth = 1;
  uint32_t strideHeight = 1, strideWidth = 1;
  size_t batch = 1, inputHeight = 1, inputWidth = 1, channels = 1;
  size_t outputHeight = 1, outputWidth = 1;
};

// Adds the node; false for types and forms that XNNPACK lacks (1x1 windows).
Result<bool> addPooling(PlanBuilder* builder, const Pooling& pooling);

}  // namespace hearth::cpu
