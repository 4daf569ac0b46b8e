// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"

namespace hearth::cpu {

// By operand of the main subgraph: whether it is a constant that nobody reads any more once
// `weights` hold what was packed from it, not when kernels are made from them again either. A model
// that may be computed without one of its inputs has none, for the interpreter then reads all.
std::vector<bool> findPackedConstants(const graph::Model& model, const Plan& plan,
                                      const PackedWeights& weights);

}  // namespace hearth::cpu
