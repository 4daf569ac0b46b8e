// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// A float32 depthwise convolution whose outputs have as many channels as its inputs. Weights are
// read where they lie: XNNPACK packs them, and fills a table of pointers, at each start.
struct F32Depthwise {
  Convolution geometry;
  // [kernelHeight][kernelWidth][channels], and one for each channel or null; both stay where they
  // are as long as the kernel lives.
  const float* weights = nullptr;
  const float* bias = nullptr;
  float lowest = 0, highest = 0;
  ValueId source = 0, destination = 0;
};

// Whether the geometry is one of those, with a window that there is code for, and this CPU has the
// instructions. Thread-safe.
bool hasF32Depthwise(const Convolution& geometry);

// Where hasF32Depthwise(). Sums are over one column of a window after another, each step
// fused, as XNNPACK's.
std::unique_ptr<Kernel> makeF32DepthwiseKernel(const F32Depthwise& layer);

// Adds the node; false for other convolutions. Types and constants are those that XNNPACK takes.
Result<bool> addF32Depthwise(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
