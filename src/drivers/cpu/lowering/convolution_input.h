// SPDX-License-Identifier: Apache-2.0
// What the lowerings of convolutions share: what their kernels read.
#pragma once

#include <memory>

#include "base/sha256.h"
#include "drivers/cpu/microkernels/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Takes over padding that the input's view leaves to its reader.
void applyPaddedView(const PlanBuilder::PaddedView& view, Convolution* convolution);

// What choosing and packing a kernel depends on, for PackedWeights::create().
std::shared_ptr<const base::Sha256Digest> convolutionPacking(PlanBuilder* builder,
                                                             const Convolution& convolution);

}  // namespace hearth::cpu
