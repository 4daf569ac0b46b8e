// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// A float32 depthwise convolution whose outputs have as many channels as its inputs. Weights are
// read in place: XNNPACK would pack them, and fill a table of pointers, at each start.
struct F32Depthwise {
  Convolution geometry;
  // [kernelHeight][kernelWidth][channels], and [channels] or null. Both must outlive the kernel.
  const float* weights = nullptr;
  const float* bias = nullptr;
  std::shared_ptr<const std::vector<float>> ownWeights;  // what `weights` are, if it keeps them
  float lowest = 0, highest = 0;
  ValueId source = 0, destination = 0;
};

// Whether F32Depthwise can describe the geometry, and this CPU has the instructions for its window:
// 3x3 or 5x5, or any other one of several places over 8 channels or more. Thread-safe.
bool hasF32Depthwise(const Convolution& geometry);

// Makes the kernel; requires hasF32Depthwise(). Sums go with fused steps and in XNNPACK's order:
// column by column of the window, but row by row where it has more places than XNNPACK's depthwise
// kernels.
std::unique_ptr<Kernel> makeF32DepthwiseKernel(const F32Depthwise& layer);

// Adds the node; false for other convolutions. The caller has checked types and constants.
Result<bool> addF32Depthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
