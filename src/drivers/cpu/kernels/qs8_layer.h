// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"

namespace hearth::cpu {

// An int8 convolution with one group.
struct Qs8Layer {
  Convolution geometry;
  Qs8Gemm product;  // its packed weights must outlive the kernel
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Whether XNNPACK packs the weights of the geometry like those of a product whose rows are gathered
// windows, where `group` inputs of a column lie together.
bool isQs8Layer(const Convolution& geometry, size_t group = kQs8Group);

// Makes a kernel with a product of ours over weights that XNNPACK's creation call has packed.
// Requires hasQs8Gemm(). Error: kUnsupported when `packed` is smaller than the layer's weights.
Result<std::unique_ptr<Kernel>> makeQs8LayerKernel(Qs8Layer layer, std::span<const uint8_t> packed);

}  // namespace hearth::cpu
