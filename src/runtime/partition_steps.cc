// SPDX-License-Identifier: Apache-2.0
#include "runtime/partition_steps.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

namespace hearth::runtime {
namespace {

// Operations that wait for their inputs, and those that are ready, by device.
class ReadyQueues {
 public:
  ReadyQueues(const graph::Subgraph& main, const std::vector<size_t>& deviceOf, size_t deviceCount)
      : main_(main),
        deviceOf_(deviceOf),
        ready_(deviceCount + 1),
        missing_(main.operations.size(), 0),
        consumers_(main.operands.size()) {
    for (uint32_t i = 0; i < main.operations.size(); ++i) {
      for (const uint32_t index : main.operations[i].inputs) {
        const graph::Lifetime lifetime = main.operands[index].lifetime;
        if (lifetime != graph::Lifetime::kTemporary && lifetime != graph::Lifetime::kSubgraphOutput)
          continue;
        consumers_[index].push_back(i);
        ++missing_[i];
      }
      if (missing_[i] == 0) ready_[deviceOf_[i]].push_back(i);
    }
  }

  // Control flow first, then the last device with ready operations; nullopt when all are done.
  std::optional<size_t> nextDevice() const {
    for (size_t d = ready_.size(); d-- > 0;)
      if (!ready_[d].empty()) return d;
    return std::nullopt;
  }

  // Takes all operations that the device can run before another device must run.
  PartitionStep drain(size_t device) {
    PartitionStep step;
    step.device = device;
    const bool isControlFlow = device + 1 == ready_.size();
    while (!ready_[device].empty() && !(isControlFlow && !step.operations.empty())) {
      const uint32_t operation = ready_[device].front();
      ready_[device].pop_front();
      step.operations.push_back(operation);
      for (const uint32_t index : main_.operations[operation].outputs) {
        for (const uint32_t consumer : consumers_[index])
          if (--missing_[consumer] == 0) ready_[deviceOf_[consumer]].push_back(consumer);
        consumers_[index].clear();
      }
    }
    return step;
  }

 private:
  const graph::Subgraph& main_;
  const std::vector<size_t>& deviceOf_;
  std::vector<std::deque<uint32_t>> ready_;
  std::vector<size_t> missing_;
  std::vector<std::vector<uint32_t>> consumers_;
};

}  // namespace

std::vector<PartitionStep> partitionSteps(const graph::Subgraph& main,
                                          const std::vector<size_t>& deviceOf, size_t deviceCount) {
  // Mostly one device takes everything: no order has to be found then.
  const bool isWhole = !deviceOf.empty() && deviceOf[0] < deviceCount &&
                       std::ranges::all_of(deviceOf, [&](size_t d) { return d == deviceOf[0]; });
  if (isWhole) {
    PartitionStep step{deviceOf[0], std::vector<uint32_t>(deviceOf.size())};
    std::iota(step.operations.begin(), step.operations.end(), 0u);
    return {std::move(step)};
  }
  ReadyQueues queues(main, deviceOf, deviceCount);
  std::vector<PartitionStep> steps;
  while (const std::optional<size_t> device = queues.nextDevice())
    steps.push_back(queues.drain(*device));
  return steps;
}

}  // namespace hearth::runtime
