// SPDX-License-Identifier: Apache-2.0
// Convolutions on XNNPACK: plain, grouped and depthwise, float32, int8 and uint8.
#pragma once

#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the nodes; false for types or constants that no kernel here takes.
Result<bool> addConvolution(PlanBuilder* builder, const Convolution& convolution);

// Whether the last tile of rows may have one row, in the families of XNNPACK's 8-bit kernels that
// compute it wrongly on some CPUs: indirect GEMM over more than 64 input channels, and any with
// float32 numbers beside 8-bit weights (`isHybrid`), which computes each image by itself. With
// KernelTraits::guardInt8OneRowTail such a convolution needs a row of memory behind its output, and
// where that is the client's memory, the output is copied.
bool mayEndInOneRow(const Convolution& convolution, bool isHybrid);

}  // namespace hearth::cpu
