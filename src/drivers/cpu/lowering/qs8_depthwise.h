// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/microkernels/qs8_dwconv.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// An int8 depthwise convolution whose outputs have as many channels as its inputs.
struct Qs8Depthwise {
  Convolution geometry;
  Qs8Dwconv product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// A kernel with a product of ours; packed weights stay where they are as long as it lives.
std::unique_ptr<Kernel> makeQs8DepthwiseKernel(const Qs8Depthwise& layer);

// Adds the node; false when the convolution is none of those, or this CPU lacks the instructions.
// Types and constants are those that XNNPACK takes.
Result<bool> addQs8Depthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
