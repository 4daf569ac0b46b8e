// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "graph/model.h"
#include "runtime/device_speed.h"
#include "runtime/partition_steps.h"

namespace hearth::runtime {

// What has to be done for an operation, or for several. Unknown dimensions count as 1, a loop as
// one round, and of an IF both branches half.
struct Work {
  double operations = 0;
  double movedBytes = 0;                        // read and written
  std::array<double, kNumberKinds> products{};  // multiplications with an addition, in layers

  Work& operator+=(const Work& other);
  Work operator*(double factor) const;
};

// The estimated time of a model on devices of which some have known speeds. What the others do, and
// control flow between devices, costs nothing: that is for those who know nothing better.
class Prices {
 public:
  explicit Prices(const graph::Model& model);

  // The kinds of numbers in layers of products.
  std::vector<NumberKind> kinds() const;

  // Seconds of an operation of the main subgraph within an execution.
  double ofOperation(const DeviceSpeed& speed, size_t operation) const;
  // Seconds of all steps one after the other, with the executions and with all bytes that go in or
  // out of devices. One speed for each device.
  double ofSteps(std::span<const std::optional<DeviceSpeed>> speeds,
                 const std::vector<PartitionStep>& steps) const;

 private:
  Work ofSubgraph(const graph::Operand& reference);
  Work workOf(const graph::Subgraph& subgraph, const graph::Operation& operation);

  const graph::Model& model_;
  std::vector<Work> works_;                     // of the operations of the main subgraph
  std::vector<std::optional<Work>> subgraphs_;  // summed once
};

}  // namespace hearth::runtime
