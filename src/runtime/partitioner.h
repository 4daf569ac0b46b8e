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

// Operations that one device runs in one go.
struct PartitionStep {
  // Index into the devices asked; their number for an IF or WHILE that none takes as a whole, which
  // is then alone in its step.
  size_t device = 0;
  std::vector<uint32_t> operations;  // of the main subgraph, in run order
};

// How long, or with kLowPower how much energy, an operation takes on a device that has these
// capabilities, relative to the reference: NNAPI looks at the type of the first input, and adds the
// operations of the subgraphs that IF (half of both branches) and WHILE refer to.
float operationCost(const graph::Model& model, const graph::Subgraph& subgraph,
                    const graph::Operation& operation, const hal::Capabilities& capabilities,
                    hal::Preference preference);

// Gives each operation of the main subgraph to the device that takes it at the lowest cost (a tie
// goes to the reference, then to the first), and joins operations of one device to as few steps as
// their order allows. Steps come in an order in which they can run. A device that fails to answer
// takes nothing. kUnsupported names operations other than IF and WHILE that no device takes, and
// why.
Result<std::vector<PartitionStep>> partition(const graph::Model& model,
                                             std::span<const std::shared_ptr<hal::Device>> devices,
                                             hal::Preference preference);

}  // namespace hearth::runtime
