// SPDX-License-Identifier: Apache-2.0
// IF and WHILE whose subgraphs are planned like the graph around them.
#pragma once

#include "base/result.h"

namespace hearth::cpu {

class PlanBuilder;

// Add the node of the current operation.
Result<bool> addIf(PlanBuilder* builder);
Result<bool> addWhile(PlanBuilder* builder);

}  // namespace hearth::cpu
