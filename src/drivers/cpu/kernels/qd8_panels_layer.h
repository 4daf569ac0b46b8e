// SPDX-License-Identifier: Apache-2.0
// Hybrid fully connected layers on AVX2 whose products read XNNPACK's panels of 8 columns.
#pragma once

#include <cstddef>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/kernels/qd8_layer.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_panels.h"

namespace hearth::cpu {

// Whether one of our products is faster than XNNPACK's for a layer of this size: that of a single
// row, of a few, or of many.
bool isQd8PanelsLayerFaster(size_t rows, size_t inputs, size_t columns);

// Makes the kernel of a layer of such a size, without windows. The product's packed weights must
// outlive it.
std::unique_ptr<Kernel> makeQd8PanelsLayerKernel(const Qd8Layer& layer,
                                                 const Avx2Qd8Panels& product);

}  // namespace hearth::cpu
