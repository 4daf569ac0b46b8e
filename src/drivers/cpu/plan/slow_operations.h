// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drivers/cpu/plan/plan.h"
#include "graph/model.h"

namespace hearth::cpu {

// The operations of the main subgraph that run on a shared kernel for want of a fast one, except
// those on few bytes, a line for each: 'ADD "sum" (TENSOR_FLOAT16 and TENSOR_FLOAT16): float16 has
// no faster kernel'. Without shapes, so that the lines are equal for all of a model's shapes.
std::vector<std::string> slowOperations(const graph::Model& model, const Plan& plan);

// Warns of the lines of which this process has not been warned yet. Thread-safe.
void warnOfSlowOperations(const std::vector<std::string>& lines);

}  // namespace hearth::cpu
