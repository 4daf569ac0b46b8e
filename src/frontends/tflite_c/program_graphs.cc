// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_graphs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "frontends/tflite_c/program_kernel.h"

namespace hearth::tflite_c {

Result<std::unique_ptr<ProgramGraphs>> ProgramGraphs::create(
    std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, int32_t threads) {
  HEARTH_TRY(provideKernelOperator());
  std::unique_ptr<ProgramGraphs> made(new ProgramGraphs(std::move(file), subgraph, threads));
  std::vector<size_t> wanted = {subgraph};
  while (!wanted.empty()) {
    const size_t next = wanted.back();
    wanted.pop_back();
    if (made->graphs_.contains(next)) continue;
    HEARTH_ASSIGN(const std::shared_ptr<ProgramGraph> graph, made->make(next));
    made->graphs_.emplace(next, graph);
    const std::vector<size_t> called = graph->calledSubgraphs();
    wanted.insert(wanted.end(), called.begin(), called.end());
  }
  return made;
}

ProgramGraphs::~ProgramGraphs() {
  for (const Graphs* graphs : {&graphs_, &others_})
    for (const auto& [index, graph] : *graphs) graph->close();
}

Result<std::shared_ptr<ProgramGraph>> ProgramGraphs::make(size_t subgraph) {
  return ProgramGraph::create(file_, subgraph, threads_, this);
}

tflite::SubgraphPlans ProgramGraphs::plans() const {
  tflite::SubgraphPlans plans;
  for (const auto& [index, graph] : graphs_) plans.emplace(index, graph->plannedOperators());
  return plans;
}

Status ProgramGraphs::useOperators(const ProgramResolver& resolver) {
  for (const auto& [index, graph] : graphs_) HEARTH_TRY(graph->useOperators(resolver));
  return {};
}

Status ProgramGraphs::apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
                            const std::function<Status()>& accept) {
  skipped_.clear();
  for (const Graphs* graphs : {&graphs_, &others_})
    for (const auto& [index, graph] : *graphs) changes_.emplace_back(graph.get());
  Status applied = main().apply(delegate, hasDynamicTensors,
                                [&] { return applyFrom(graphs_.begin(), delegate, accept); });
  if (applied)
    for (ProgramGraph::Change& change : changes_) change.keep();
  changes_.clear();
  return applied;
}

bool ProgramGraphs::isApplying() const {
  return std::ranges::any_of(graphs_,
                             [](const auto& each) { return each.second->isBeingPrepared(); });
}

Status ProgramGraphs::applyFrom(Graphs::iterator next, TfLiteDelegate* delegate,
                                const std::function<Status()>& accept) {
  while (next != graphs_.end() && (next->first == subgraph_ || skipped_.contains(next->first)))
    ++next;
  if (next == graphs_.end()) return accept();
  ProgramGraph& graph = *next->second;
  return graph.apply(delegate, false, [&] { return applyFrom(std::next(next), delegate, accept); });
}

bool ProgramGraphs::hasDelegates() const {
  return std::ranges::any_of(graphs_, [](const auto& each) { return each.second->hasDelegates(); });
}

void ProgramGraphs::removeDelegates() {
  for (const auto& [index, graph] : graphs_) graph->removeDelegates();
}

bool ProgramGraphs::has(int32_t subgraph) const {
  return subgraph >= 0 && static_cast<size_t>(subgraph) < file_->subgraphCount();
}

TfLiteContext* ProgramGraphs::context(int32_t subgraph) {
  if (!has(subgraph)) return nullptr;
  const auto index = static_cast<size_t>(subgraph);
  if (const auto found = graphs_.find(index); found != graphs_.end())
    return found->second->context();
  TfLiteContext* context = nullptr;
  base::logged("A delegate's view of a subgraph", [&] {
    std::shared_ptr<ProgramGraph>& graph = others_[index];
    if (graph == nullptr) {
      auto made = make(index);
      if (made) graph = std::move(*made);
      if (graph != nullptr && isApplying()) changes_.emplace_back(graph.get());
    }
    if (graph != nullptr) context = graph->context();
  });
  return context;
}

bool ProgramGraphs::skip(int32_t subgraph) {
  if (!has(subgraph)) return false;
  skipped_.insert(static_cast<size_t>(subgraph));
  return true;
}

}  // namespace hearth::tflite_c
