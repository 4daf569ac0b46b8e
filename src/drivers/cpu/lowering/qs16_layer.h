// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/microkernels/portable/qs16_gemm.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds the node of a convolution, or of a fully connected layer as a convolution of single pixels,
// with 16-bit activations and constant 8-bit weights. Sums are exact and rounded once, halves away
// from zero. `kind` names the operation in reports. False for other layers and types, and for
// groups of few outputs.
Result<bool> addQs16Layer(PlanBuilder* builder, const Convolution& geometry, const char* kind);

}  // namespace hearth::cpu
