// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/cpu/plan_builder.h"

namespace hearth::cpu {

// TRANSPOSE_CONV_2D on XNNPACK: float32, uint8 and int8 with constant weights. XNNPACK packs these
// weights at each start. False for other types, for NCHW, for outputs narrower than a stride, and for
// int8 on CPUs whose int8 kernels compute some last rows wrongly.
Result<bool> lowerTransposeConv2d(PlanBuilder* builder);

}  // namespace hearth::cpu
