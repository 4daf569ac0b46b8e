// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/nested_graph.h"

#include <mutex>
#include <utility>

#include "drivers/cpu/plan/kernel_factory.h"

namespace hearth::cpu {

NestedGraph::NestedGraph(const graph::Model& model, PlannedSubgraph planned, PackedWeights* weights)
    : model_(model), what_(std::move(planned)), weights_(weights) {}

NestedGraph::~NestedGraph() = default;

Result<std::shared_ptr<NestedGraph>> NestedGraph::create(const graph::Model& model,
                                                         PlannedSubgraph planned,
                                                         PackedWeights* weights) {
  std::shared_ptr<NestedGraph> made(new NestedGraph(model, std::move(planned), weights));
  HEARTH_ASSIGN(made->planned_, made->plan({}));
  // It counts for the plans that are made now.
  made->what_.allowance = nullptr;
  return made;
}

Result<std::shared_ptr<const NestedGraph::Planned>> NestedGraph::plan(
    const std::set<uint32_t>& referenceOnly) {
  PlanBuilder builder(model_, weights_, referenceOnly, {}, what_);
  HEARTH_TRY(builder.build());
  auto planned = std::make_shared<Planned>();
  planned->constants = builder.constants().takeCopies();
  if (outputBytes_.empty()) {
    for (const uint32_t output : subgraph().outputs) {
      outputDimensions_.push_back(builder.tensor(output).dimensions);
      outputBytes_.push_back(tensorBytes(builder.tensor(output)));
    }
  }
  planned->plan = builder.takePlan();
  HEARTH_TRY(planArena(&planned->plan, what_.maxArenaBytes));
  return planned;
}

Result<std::shared_ptr<ExecutionContext>> NestedGraph::makeContext(threads::ThreadPool* pool) {
  while (true) {
    std::shared_ptr<const Planned> planned;
    {
      const std::lock_guard lock(mutex_);
      planned = planned_;
    }
    const auto kernels = std::make_shared<KernelFactory>(planned->plan, pool);
    // One after the other: this is called while the pool builds the kernels of the whole graph.
    Status made;
    for (size_t node = 0; node < planned->plan.nodes.size() && made; ++node)
      if (const Result<Kernel*> kernel = kernels->get(node); !kernel)
        made = std::unexpected(kernel.error());
    if (made) {
      HEARTH_ASSIGN(std::unique_ptr<ExecutionContext> context,
                    ExecutionContext::create(planned->plan, kernels));
      // The context refers to the plan.
      const std::shared_ptr<ExecutionContext> owned = std::move(context);
      struct Kept {
        std::shared_ptr<const Planned> planned;
        std::shared_ptr<ExecutionContext> context;
      };
      const auto kept = std::make_shared<Kept>(Kept{planned, owned});
      return std::shared_ptr<ExecutionContext>(kept, kept->context.get());
    }
    // XNNPACK refuses an operation: plan again, with the shared kernel for it.
    const std::vector<uint32_t> refused = kernels->refused();
    const std::lock_guard lock(mutex_);
    const size_t before = referenceOnly_.size();
    referenceOnly_.insert(refused.begin(), refused.end());
    if (planned == planned_) {
      if (referenceOnly_.size() == before) return std::unexpected(made.error());
      HEARTH_ASSIGN(planned_, plan(referenceOnly_));
    }
  }
}

}  // namespace hearth::cpu
