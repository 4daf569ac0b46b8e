// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// A float32 convolution with few output channels. Weights are read in place.
struct F32NarrowConvolution {
  Convolution geometry;
  // [output channels][kernelHeight][kernelWidth][input channels], and [output channels] or null.
  // Both must outlive the kernel.
  const float* weights = nullptr;
  const float* bias = nullptr;
  float lowest = 0, highest = 0;
  ValueId source = 0, destination = 0;
};

// Whether the kernel is faster than a product over panels of columns. Thread-safe.
bool hasF32Narrow(const Convolution& geometry);

// Makes the kernel; requires hasF32Narrow(). Results are those of XNNPACK.
std::unique_ptr<Kernel> makeF32NarrowKernel(const F32NarrowConvolution& layer);

// Adds the node; false for other convolutions. The caller has checked types and constants.
Result<bool> addF32Narrow(PlanBuilder* builder, const Convolution& convolution);

}  // namespace hearth::cpu
