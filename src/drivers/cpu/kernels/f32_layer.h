// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/microkernels/f32_gemm.h"

namespace hearth::cpu {

// A float32 convolution with one group, or a fully connected layer as one over single pixels.
struct F32Layer {
  Convolution geometry;  // sizes, pads, strides and dilations of it
  // Its packed weights are those of the layer, and stay where they are as long as the kernel lives.
  F32Gemm product;
  ValueId source = 0, destination = 0;
  size_t outputOffset = 0;  // elements of `destination` before the first column
};

// Whether the geometry is one of those.
bool isF32Layer(const Convolution& geometry);

// Whether XNNPACK's kernel, of the same weights, is the better one to begin with: with AVX-512 its
// smaller tiles suit sums of few steps.
bool isFasterOnXnnpack(const Convolution& geometry);

// A kernel with a product of ours, where hasF32Gemm(), over what XNNPACK's creation call has
// packed at `place`. kUnsupported when that is not of the layer's size.
Result<std::unique_ptr<Kernel>> makeF32LayerKernel(F32Layer layer, std::span<const uint8_t> packed);

}  // namespace hearth::cpu
