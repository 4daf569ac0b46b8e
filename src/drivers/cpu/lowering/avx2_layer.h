// SPDX-License-Identifier: Apache-2.0
// int8 and uint8 convolutions and fully connected layers on our product for AVX2, where the CPU has
// no AVX-512 VNNI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/weights/layer_packing.h"

namespace hearth::cpu {

// A convolution with one group, or a part of its output channels.
struct Avx2Layer {
  Convolution geometry;
  Avx2Gemm product;  // its packed weights must outlive the kernel
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;
  size_t outputOffset = 0;  // bytes of `destination` before the first column
};

// Makes a kernel that gives the very bytes of XNNPACK's. Requires hasAvx2().
std::unique_ptr<Kernel> makeAvx2LayerKernel(const Avx2Layer& layer);

// What is added to the sums of the product's columns, whose inputs are those of a layer with the
// zero point `inputZero`, made unsigned. `bias` may be null.
std::vector<int32_t> avx2Constants(const Avx2Weights& weights, const int32_t* bias,
                                   int32_t inputZero);

// Packs a layer's weights, whose constants are null, or finds the packing. constantsOf() computes
// the constants when they are needed; they live as long as the call. `rows` are those of the
// product.
Result<Avx2Panels> packAvx2(const LayerPacking& packing, const char* kind,
                            const Avx2Weights& weights, size_t rows,
                            const std::function<const int32_t*(const Avx2Weights&)>& constantsOf);

// Adds the nodes for a convolution with one group, or for a fully connected layer as a convolution
// of single pixels. `kind` names the operation in reports. False for other layers, and where
// another kernel is faster. The caller has checked types and constants.
Result<bool> addAvx2Layer(PlanBuilder* builder, const Convolution& geometry, const char* kind);

}  // namespace hearth::cpu
