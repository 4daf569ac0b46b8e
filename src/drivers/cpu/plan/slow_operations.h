// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drivers/cpu/plan/plan.h"
#include "graph/model.h"

namespace hearth::cpu {

// A sentence that names the operations of the main subgraph that run on a shared kernel for want of
// a fast one, with their types and why (Node::whySlow); the first ones, where there are many. Empty
// where there is none.
std::string describeSlowOperations(const graph::Model& model, const Plan& plan);

}  // namespace hearth::cpu
