// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/graph_reader.h"
#include "frontends/delegate/kernel.h"

namespace hearth::delegate {

// Decides which nodes of an interpreter's graph Hearth runs, and makes the kernels of their
// partitions. Used once, by one thread, during one call of TfLiteDelegate::Prepare.
class NodeSelection {
 public:
  NodeSelection(TfLiteContext* context, std::shared_ptr<const DelegateOptions> options);

  // kOpFailed when the runtime refuses.
  Status select();

  // In ascending order.
  std::vector<int32_t> nodes() const { return {selected_.begin(), selected_.end()}; }
  // The number of nodes in the graph.
  size_t nodeCount() const { return plan_.size(); }

  // By the nodes of their partitions, in run order.
  using Kernels = std::map<std::vector<int32_t>, std::unique_ptr<Kernel>>;
  Kernels takeKernels() { return std::move(kernels_); }

 private:
  struct Partition {
    std::vector<int32_t> nodes;
    std::vector<int32_t> inputs;
    std::vector<int32_t> outputs;
  };

  Status readPlan();
  void selectOneByOne();
  bool isTaken(const GraphReader::Node& node);
  bool isOpen(int32_t tensor);
  Result<std::vector<Partition>> preview();
  Result<std::unique_ptr<Kernel>> makeKernel(const Partition& partition);
  Result<bool> makeKernels(bool mayLeaveSmall);

  TfLiteContext* const context_;
  GraphReader reader_;
  std::shared_ptr<const DelegateOptions> options_;
  std::vector<GraphReader::Node> plan_;
  std::map<int32_t, const SourceNode*> sources_;      // by node
  std::map<int32_t, graph::Dimensions> knownShapes_;  // of what taken nodes compute
  std::set<int32_t> unknownShapes_;                   // tensors whose shapes depend on values
  std::set<int32_t> selected_;
  Kernels kernels_;
};

}  // namespace hearth::delegate
