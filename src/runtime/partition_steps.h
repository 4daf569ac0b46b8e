// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/model.h"

namespace hearth::runtime {

// Operations that one device runs as one model.
struct PartitionStep {
  // Index of the device. An IF or WHILE that no device takes as a whole has the number of devices
  // here, and a step of its own.
  size_t device = 0;
  std::vector<uint32_t> operations;  // of the main subgraph, in run order
};

// Joins operations of one device to as few steps as their order allows. Returns the steps in an
// order in which they can run. `deviceOf` has a device, or `deviceCount`, for each operation of
// `main`.
std::vector<PartitionStep> partitionSteps(const graph::Subgraph& main,
                                          const std::vector<size_t>& deviceOf, size_t deviceCount);

}  // namespace hearth::runtime
