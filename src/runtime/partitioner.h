// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::runtime {

// Operations that one device runs as one model.
struct PartitionStep {
  // Index of the device. An IF or WHILE that no device takes as a whole has the number of devices
  // here, and a step of its own.
  size_t device = 0;
  std::vector<uint32_t> operations;  // of the main subgraph, in run order
};

// Execution time, or power with kLowPower, of an operation on a device with these capabilities,
// relative to the reference. As in NNAPI, the type of the first input decides; IF adds half the
// cost of both branches, WHILE the cost of its condition and body.
float operationCost(const graph::Model& model, const graph::Subgraph& subgraph,
                    const graph::Operation& operation, const hal::Capabilities& capabilities,
                    hal::Preference preference);

// Gives each operation of the main subgraph to the device that takes it at the lowest cost (a tie
// goes to the reference, then to the first), and joins operations of one device to as few steps as
// their order allows. Returns the steps in an order in which they can run. A device that fails to
// answer takes nothing. kUnsupported names operations other than IF and WHILE that no device takes,
// and why.
Result<std::vector<PartitionStep>> partition(const graph::Model& model,
                                             std::span<const std::shared_ptr<hal::Device>> devices,
                                             hal::Preference preference);

}  // namespace hearth::runtime
