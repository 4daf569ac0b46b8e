// SPDX-License-Identifier: Apache-2.0
// For tests: random graphs whose inputs have other shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/testing/random_graph.h"

namespace hearth::runtime {

// The same operations over smaller inputs: graphs of which no two have the same input shapes, with
// the results and the same tolerances. Up to `most` of them; none where each input's dimensions are
// bound to constants. Made of a graph with headroom, since values of smaller tensors (a mean of
// fewer numbers) may be greater.
std::vector<RandomGraph> inSmallerShapes(const RandomGraph& graph, uint64_t seed, size_t most);

// One model for graphs that differ in shapes alone: it does not tell the dimensions that differ,
// nor some others, nor the ranks of some tensors, in any of its subgraphs. Requests have to give
// the inputs the dimensions of one of the graphs.
std::shared_ptr<const graph::Model> ofUnknownShapes(const std::vector<RandomGraph>& graphs,
                                                    uint64_t seed);

}  // namespace hearth::runtime
