// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"

namespace hearth::cpu {

// A float32 convolution, or a fully connected layer as a convolution of single pixels.
struct F32Layer {
  Convolution geometry;  // sizes, pads, strides and dilations
  // That of one group. Its packed weights are the layer's, group by group. They must outlive the
  // kernel.
  F32Gemm product;
  ValueId source = 0, destination = 0;
  // What is added to the layer's sums before they are clamped: a tensor of the destination's shape,
  // which may have its memory.
  std::optional<ValueId> addend;
  // A number for each channel of the output: what the clamped sums that are negative are multiplied
  // by, as PRELU does.
  std::optional<ValueId> slopes;
  size_t outputOffset = 0;  // elements of `destination` before the first column
};

// Whether F32Layer can describe the geometry.
bool isF32Layer(const Convolution& geometry);

// Whether XNNPACK's kernel over the same weights is the better first kernel: with AVX-512 its
// smaller tiles suit sums of few steps, unless rows lie evenly apart (multiplyEvenF32()).
bool isFasterOnXnnpack(const Convolution& geometry);

// Makes a kernel with a product of ours over weights that XNNPACK's creation call has packed.
// Requires hasF32Gemm(). Error: kUnsupported when `packed` is smaller than the layer's weights.
Result<std::unique_ptr<Kernel>> makeF32LayerKernel(F32Layer layer, std::span<const uint8_t> packed);

}  // namespace hearth::cpu
