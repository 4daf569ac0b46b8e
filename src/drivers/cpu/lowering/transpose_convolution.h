// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// TRANSPOSE_CONV_2D with constant weights: float32, uint8 and int8 on XNNPACK, which packs these
// weights at each start, or int8 on a product of ours (transpose_layer.h). False for other types,
// for NCHW, and for int8 on CPUs that lack our product and whose int8 kernels compute some last
// rows wrongly.
Result<bool> lowerTransposeConv2d(PlanBuilder* builder);

}  // namespace hearth::cpu
