// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/microkernels/qs8_gemm.h"

namespace hearth::cpu {

// An int8 convolution with one group.
struct Qs8Layer {
  Convolution geometry;
  Qs8Gemm product;  // its packed weights stay where they are as long as the kernel lives
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Whether XNNPACK packs the weights of the geometry as those of windows gathered to one row each.
bool isQs8Layer(const Convolution& geometry);

// A kernel with a product of ours, where hasQs8Gemm(), over what XNNPACK's creation call has
// packed at `place`. kUnsupported when that is not of the layer's size.
Result<std::unique_ptr<Kernel>> makeQs8LayerKernel(Qs8Layer layer, std::span<const uint8_t> packed);

}  // namespace hearth::cpu
