// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_dwconv.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// An int8 or uint8 depthwise convolution whose outputs have as many channels as its inputs.
struct Avx2Depthwise {
  Convolution geometry;
  Avx2Dwconv product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Makes a kernel with our product for AVX2. The packed weights must outlive it.
std::unique_ptr<Kernel> makeAvx2DepthwiseKernel(const Avx2Depthwise& layer);

// Adds the node; false for other convolutions, when this CPU lacks the instructions, and for int8
// where it has AVX-512 VNNI. The caller has checked types and constants.
Result<bool> addAvx2Depthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
