// SPDX-License-Identifier: Apache-2.0
// float32 transposed convolutions on our product.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// A float32 transposed convolution of NHWC tensors.
struct F32TransposeLayer {
  ops::TransposeConv2dParameters geometry;
  const float* packed = nullptr;
  float lowest = 0, highest = 0;
  ValueId source = 0, destination = 0;

  size_t packedBytes() const;
};

// Packs weights [outputs][height][width][inputs] with their bias (may be null) into `packed`, which
// has packedBytes() bytes: the panels of one combination of parts behind the other.
void packF32Transpose(const F32TransposeLayer& layer, const float* weights, const float* bias,
                      float* packed);

// Makes a kernel whose sums go tap by tap, the first one of the filter first, with fused steps, as
// XNNPACK's where a panel has no more columns than there are output channels. Requires
// cpuHasF32Gemm(). The packed weights must outlive the kernel.
std::unique_ptr<Kernel> makeF32TransposeKernel(const F32TransposeLayer& layer);

// Adds the node for a layer of NHWC tensors; false when it is not float32, has few channels or long
// strides, or this CPU lacks the instructions. The caller has checked types and constants.
Result<bool> addF32TransposeLayer(PlanBuilder* builder,
                                  const ops::TransposeConv2dParameters& geometry);

}  // namespace hearth::cpu
