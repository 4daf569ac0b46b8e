// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <queue>
#include <vector>

#include "graph/model.h"

namespace hearth::graph {
namespace {

Status sortSubgraph(Subgraph* subgraph) {
  const size_t count = subgraph->operations.size();
  std::vector<std::vector<size_t>> consumers(subgraph->operands.size());
  std::vector<size_t> missing(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t index : subgraph->operations[i].inputs) {
      if (index >= subgraph->operands.size())
        return fail(ErrorCode::kBadData, "Operation {} reads operand {} of {}.", i, index,
                    subgraph->operands.size());
      const Lifetime lifetime = subgraph->operands[index].lifetime;
      if (lifetime != Lifetime::kTemporary && lifetime != Lifetime::kSubgraphOutput) continue;
      consumers[index].push_back(i);
      ++missing[i];
    }
  }
  // Takes the lowest ready index first, which keeps a given order that is valid.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<Operation> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    for (uint32_t index : subgraph->operations[i].outputs) {
      if (index >= subgraph->operands.size())
        return fail(ErrorCode::kBadData, "Operation {} writes operand {} of {}.", i, index,
                    subgraph->operands.size());
      for (size_t consumer : consumers[index])
        if (--missing[consumer] == 0) ready.push(consumer);
      consumers[index].clear();
    }
    sorted.push_back(std::move(subgraph->operations[i]));
  }
  if (sorted.size() != count)
    return fail(ErrorCode::kBadData,
                "{} of {} operations read operands that no earlier operation writes.",
                count - sorted.size(), count);
  subgraph->operations = std::move(sorted);
  return {};
}

}  // namespace

Status sortIntoRunOrder(Model* model) {
  for (size_t i = 0; i < model->subgraphs.size(); ++i)
    HEARTH_TRY_CONTEXT(sortSubgraph(&model->subgraphs[i]), "while sorting subgraph {}", i);
  return {};
}

}  // namespace hearth::graph
