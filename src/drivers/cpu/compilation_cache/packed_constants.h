// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"

namespace hearth::cpu {

// By operand of the main subgraph: whether it is a constant that is only needed packed. Neither
// kernels nor the building of kernels read it again, because `weights` hold its packing. A model
// that can run without one of its inputs has no such constants: the interpreter would read them.
std::vector<bool> findPackedConstants(const graph::Model& model, const Plan& plan,
                                      const PackedWeights& weights);

}  // namespace hearth::cpu
