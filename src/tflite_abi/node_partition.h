// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace hearth::tflite_abi {

// A node of an execution plan.
struct PlannedNode {
  int32_t index = 0;
  std::vector<int32_t> inputs;  // tensors; -1 = omitted
  std::vector<int32_t> outputs;
  // Tensors that keep a value beyond the run, and that the node may change: nodes that name one
  // keep their order.
  std::vector<int32_t> states;
  bool hasSideEffects = false;  // such nodes keep their order, too
};

// Nodes that can run together, without others in between.
struct NodeSubset {
  bool isTaken = false;          // by the delegate
  std::vector<int32_t> nodes;    // in run order
  std::vector<int32_t> inputs;   // tensors that come from elsewhere, constants included; sorted
  std::vector<int32_t> outputs;  // tensors that are needed elsewhere; sorted
};

// Divides a plan, which is in run order, into as few subsets as taking nodes in their order gives.
// Subsets are in run order. `results` are the outputs of the graph.
std::vector<NodeSubset> partitionNodes(const std::vector<PlannedNode>& plan,
                                       const std::set<int32_t>& taken,
                                       const std::vector<int32_t>& results);

}  // namespace hearth::tflite_abi
