// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// TRANSPOSE_CONV_2D with constant weights: int8 on a product of ours where the CPU has it
// (transpose_layer.h); else float32, uint8 and int8 on XNNPACK, which packs these weights at each
// start. False for other types and for NCHW. On XNNPACK also false for fewer outputs than the
// stride, and for int8 on CPUs whose int8 kernels compute some last rows wrongly.
Result<bool> lowerTransposeConv2d(PlanBuilder* builder);

}  // namespace hearth::cpu
