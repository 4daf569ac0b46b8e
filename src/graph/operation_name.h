// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "graph/model.h"

namespace hearth::graph {

// What people call an operation of the subgraph: its own name or, without one, that of its first
// output. May be empty.
inline const std::string& operationName(const Subgraph& subgraph, const Operation& operation) {
  if (!operation.name.empty() || operation.outputs.empty()) return operation.name;
  return subgraph.operands[operation.outputs.front()].name;
}

}  // namespace hearth::graph
