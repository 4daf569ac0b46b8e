// SPDX-License-Identifier: Apache-2.0
// int8 and uint8 convolutions with windows of 3 x 3 on our product for AVX2 after Winograd, where
// the CPU has no dot product of bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_winograd.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// A convolution with one group, windows of 3 x 3, and neither strides nor dilation.
struct WinogradLayer {
  Convolution geometry;
  Avx2Winograd product;  // its packed weights must outlive the kernel
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
};

// Makes a kernel that gives the very bytes of XNNPACK's. Requires hasAvx2Winograd() of its product.
std::unique_ptr<Kernel> makeWinogradLayerKernel(const WinogradLayer& layer);

// Adds the node; false for other convolutions, and where another kernel is faster. The caller has
// checked types and constants.
Result<bool> addWinogradLayer(PlanBuilder* builder, const Convolution& geometry);

}  // namespace hearth::cpu
