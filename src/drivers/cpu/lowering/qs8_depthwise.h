// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_dwconv.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// An int8 depthwise convolution whose outputs have as many channels as its inputs.
struct Qs8Depthwise {
  Convolution geometry;
  Qs8Dwconv product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Describes the window and the channels of a convolution to the product, which reads windows that
// are neither 3 x 3 nor 5 x 5 as one column of places. False when this CPU lacks the instructions,
// and for a window of one place.
bool setQs8Window(const Convolution& geometry, Qs8Dwconv* product);

// Makes a kernel with a product of ours. The packed weights must outlive it.
std::unique_ptr<Kernel> makeQs8DepthwiseKernel(const Qs8Depthwise& layer);

// Adds the node; false for other convolutions, and when this CPU lacks the instructions. The caller
// has checked types and constants.
Result<bool> addQs8Depthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
