// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "graph/model.h"

namespace hearth::threads {
class ThreadPool;
}

namespace hearth::cpu {

class PackedWeights;

// A subgraph that IF or WHILE refers to, as an execution graph of its own, for the shapes that the
// operation gives it. Its weights are packed with those of the whole model. Thread-safe. The model
// and `weights` outlive it.
class NestedGraph {
 public:
  // Plans the subgraph. Errors: kUnsupported when it has to be interpreted; those of
  // PlanBuilder::build() and planArena().
  static Result<std::shared_ptr<NestedGraph>> create(const graph::Model& model,
                                                     PlannedSubgraph planned,
                                                     PackedWeights* weights);
  ~NestedGraph();

  const graph::Subgraph& subgraph() const { return model_.subgraphs[what_.index]; }
  // Dimensions of the outputs, and their sizes in bytes.
  const std::vector<graph::Dimensions>& outputDimensions() const { return outputDimensions_; }
  const std::vector<uint64_t>& outputBytes() const { return outputBytes_; }

  // A context with all kernels built; it keeps what it refers to.
  Result<std::shared_ptr<ExecutionContext>> makeContext(threads::ThreadPool* pool);

 private:
  struct Planned {
    Plan plan;
    std::vector<std::unique_ptr<uint8_t[]>> constants;
  };

  NestedGraph(const graph::Model& model, PlannedSubgraph planned, PackedWeights* weights);
  Result<std::shared_ptr<const Planned>> plan(const std::set<uint32_t>& referenceOnly);

  const graph::Model& model_;
  PlannedSubgraph what_;
  PackedWeights* const weights_;
  std::vector<graph::Dimensions> outputDimensions_;
  std::vector<uint64_t> outputBytes_;

  base::Mutex mutex_;
  std::set<uint32_t> referenceOnly_;  // operations that XNNPACK refuses
  std::shared_ptr<const Planned> planned_;
};

}  // namespace hearth::cpu
