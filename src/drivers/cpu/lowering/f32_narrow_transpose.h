// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// A float32 transposed convolution with few output channels. Weights are read in place.
struct F32NarrowTranspose {
  ops::TransposeConv2dParameters geometry;
  // [output channels][filter height][filter width][input channels], and [output channels] or null.
  // Both must outlive the kernel.
  const float* weights = nullptr;
  const float* bias = nullptr;
  float lowest = 0, highest = 0;
  ValueId source = 0, destination = 0;
};

// Whether the kernel is faster than a product over panels of columns. Thread-safe.
bool hasF32NarrowTranspose(const ops::TransposeConv2dParameters& geometry);

// Makes the kernel; requires hasF32NarrowTranspose(). The sum of an output begins with the bias and
// goes in the order of the filter's rows, columns and channels, with fused steps.
std::unique_ptr<Kernel> makeF32NarrowTransposeKernel(const F32NarrowTranspose& layer);

// Adds the node; false for other transposed convolutions. The caller has checked types and
// constants.
Result<bool> addF32NarrowTranspose(PlanBuilder* builder,
                                   const ops::TransposeConv2dParameters& geometry);

}  // namespace hearth::cpu
