// SPDX-License-Identifier: Apache-2.0
// Functions of pairs of float32 numbers on kernels of ours: the C library computes them one at a
// time.
#pragma once

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// POW and ATAN2; false for other types, where an input has to be repeated that is not a single
// number, and for POW with the exponent 2, which needs no such function.
Result<bool> lowerPow(PlanBuilder* builder);
Result<bool> lowerAtan2(PlanBuilder* builder);

}  // namespace hearth::cpu
