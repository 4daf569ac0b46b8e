// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "graph/model.h"

namespace hearth::cpu {

// Fully connected layers, each behind the one before. Their constants lie one after the other in
// the pool: the weights of a layer, then its biases. `widths` are those of the input and of each
// layer's output.
inline std::shared_ptr<const graph::Model> layerChainOver(memory::PoolRef pool,
                                                          const std::vector<uint32_t>& widths) {
  using graph::Lifetime;
  auto model = std::make_shared<graph::Model>();
  graph::Subgraph graph;
  const auto tensor = [&](graph::Dimensions dimensions, Lifetime lifetime,
                          graph::DataLocation location = {}) {
    graph::Operand operand;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = lifetime;
    operand.location = location;
    graph.operands.push_back(operand);
    return static_cast<uint32_t>(graph.operands.size() - 1);
  };
  model->constantBytes.resize(64);
  const uint32_t activation = tensor({}, Lifetime::kConstantCopy, {0, 0, sizeof(int32_t)});
  graph.operands[activation].type = graph::OperandType::kInt32;
  uint32_t value = tensor({1, widths.front()}, Lifetime::kSubgraphInput);
  graph.inputs = {value};
  uint64_t at = 0;
  const auto constant = [&](graph::Dimensions dimensions) {
    uint64_t bytes = sizeof(float);
    for (const uint32_t dimension : dimensions) bytes *= dimension;
    const uint32_t operand =
        tensor(std::move(dimensions), Lifetime::kConstantReference, {0, at, bytes});
    at += bytes;
    return operand;
  };
  for (size_t i = 1; i < widths.size(); ++i) {
    const uint32_t weights = constant({widths[i], widths[i - 1]});
    const uint32_t bias = constant({widths[i]});
    const bool isLast = i + 1 == widths.size();
    const uint32_t next =
        tensor({1, widths[i]}, isLast ? Lifetime::kSubgraphOutput : Lifetime::kTemporary);
    graph.operations.push_back(
        {graph::OperationType::kFullyConnected, {value, weights, bias, activation}, {next}, ""});
    value = next;
  }
  graph.outputs = {value};
  model->subgraphs.push_back(std::move(graph));
  model->pools = {std::move(pool)};
  return model;
}

}  // namespace hearth::cpu
