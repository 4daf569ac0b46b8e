// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/program_graph.h"
#include "frontends/tflite_c/program_resolver.h"

namespace hearth::tflite_c {

// A subgraph and those that its IF and WHILE call, as delegates and operators of the program see
// them. For one thread at a time.
class ProgramGraphs {
 public:
  // `threads` is what the interpreter recommends to kernels. Errors: those of
  // ProgramGraph::create().
  static Result<std::unique_ptr<ProgramGraphs>> create(
      std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, int32_t threads);
  // Closes the graphs: delegates of the program may be gone after this.
  ~ProgramGraphs();
  ProgramGraphs(const ProgramGraphs&) = delete;
  ProgramGraphs& operator=(const ProgramGraphs&) = delete;

  ProgramGraph& main() const { return *graphs_.at(subgraph_); }
  // What the subgraphs run.
  tflite::SubgraphPlans plans() const;

  // Errors: those of ProgramGraph::useOperators().
  Status useOperators(const ProgramResolver& resolver);
  // Offers each subgraph to the delegate, which may take nodes of any that it asks for, then calls
  // `accept`. Where one of them fails, all are as before. Errors: those of ProgramGraph::apply().
  Status apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
               const std::function<Status()>& accept);
  bool hasDelegates() const;  // that have taken nodes
  void removeDelegates();

  // For contexts of the graphs: whether the file has a subgraph; the context of one, null where
  // there is none; that it is not offered to the delegate that is being applied; and whether one
  // is.
  bool has(int32_t subgraph) const;
  TfLiteContext* context(int32_t subgraph);
  bool skip(int32_t subgraph);
  bool isApplying() const;

 private:
  using Graphs = std::map<size_t, std::shared_ptr<ProgramGraph>>;

  ProgramGraphs(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, int32_t threads)
      : file_(std::move(file)), subgraph_(subgraph), threads_(threads) {}
  Result<std::shared_ptr<ProgramGraph>> make(size_t subgraph);
  // Offers the subgraphs in the file's order, those before `next` excepted.
  Status applyFrom(Graphs::iterator next, TfLiteDelegate* delegate,
                   const std::function<Status()>& accept);

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t subgraph_;
  const int32_t threads_;
  Graphs graphs_;  // that a run may reach
  Graphs others_;  // that a delegate has asked for
  // Of the delegate that is being applied.
  std::set<size_t> skipped_;
  std::deque<ProgramGraph::Change> changes_;
};

}  // namespace hearth::tflite_c
