// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::cpu {

class PlanBuilder;

// Makes the output of the current operation a constant of the graph if its inputs are constants or
// results of such operations: conversions, changes of shape and order, arithmetic. Layers that pack
// the constant compute it while packing; for other readers it is computed when the graph is built,
// as far as that takes little memory. False where the operation has to run.
bool foldConstants(PlanBuilder* builder);

}  // namespace hearth::cpu
