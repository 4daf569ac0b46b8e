// SPDX-License-Identifier: Apache-2.0
// Helpers for the inputs of convolutions, shared by their lowerings.
#pragma once

#include <memory>

#include "base/sha256.h"
#include "drivers/cpu/microkernels/portable/convolution.h"
#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Makes the convolution apply the padding of its input's view and read the view's source.
void applyPaddedView(const PlanBuilder::PaddedView& view, Convolution* convolution);

// The digest that names the packing, for PackedWeights::create(): of all that choosing and packing
// a kernel depends on. Null as from PlanBuilder::packingSource().
std::shared_ptr<const base::Sha256Digest> convolutionPacking(PlanBuilder* builder,
                                                             const Convolution& convolution);

}  // namespace hearth::cpu
