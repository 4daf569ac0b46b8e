// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/amx/amx_gemm.h"

namespace hearth::cpu {

// An int8 convolution with one group whose weights XNNPACK packs for AMX: one for which
// isQs8Layer(geometry, kAmxGroup).
struct AmxLayer {
  Convolution geometry;
  AmxGemm product;  // its packed weights must outlive the kernel
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Makes a kernel with a product of ours over weights that XNNPACK's creation call has packed.
// Requires hasAmxGemm(). Error: kUnsupported when `packed` is smaller than the layer's weights.
Result<std::unique_ptr<Kernel>> makeAmxLayerKernel(AmxLayer layer, std::span<const uint8_t> packed);

}  // namespace hearth::cpu
