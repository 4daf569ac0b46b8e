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
#include "runtime/device_speeds.h"
#include "runtime/partition_steps.h"

namespace hearth::runtime {

// Execution time, or power with kLowPower, of an operation on a device with these capabilities,
// relative to the reference. As in NNAPI, the type of the first input decides; IF adds half the
// cost of both branches, WHILE the cost of its condition and body.
float operationCost(const graph::Model& model, const graph::Subgraph& subgraph,
                    const graph::Operation& operation, const hal::Capabilities& capabilities,
                    hal::Preference preference);

struct Partition {
  std::vector<PartitionStep> steps;  // in an order in which they can run
  std::string reason;  // why these devices, for people; empty where the drivers' figures decided
};

// Gives each operation of the main subgraph to the device that takes it at the lowest cost (a tie
// goes to the reference, then to the first), and joins operations of one device to as few steps as
// their order allows. A device that fails to answer takes nothing. kUnsupported names operations
// other than IF and WHILE that no device takes, and why.
//
// Where `speeds` (null: nothing) knows all devices but the reference, and not the lowest power is
// wanted, the expected time of the whole decides instead (chooseByPrice()); what only the reference
// takes stays there.
Result<Partition> partition(const graph::Model& model,
                            std::span<const std::shared_ptr<hal::Device>> devices,
                            const hal::PrepareOptions& options, DeviceSpeeds* speeds = nullptr);

}  // namespace hearth::runtime
