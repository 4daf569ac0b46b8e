// SPDX-License-Identifier: Apache-2.0
// For tests: other models that compute what a random graph does.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/testing/random_graph.h"

namespace hearth::runtime {

// The same model, which does not tell some dimensions of its inputs, or their ranks, nor the shapes
// of what it computes. Requests have to give the inputs the dimensions of `graph`.
RandomGraph withUnknownShapes(const RandomGraph& graph, uint64_t seed);

// The same model with shapes that depend on values: up to three tensors, chosen by `seed`, pass
// through a RESHAPE by a shape that is an input of the model, behind those of `graph`. What is
// computed has no declared dimensions, only ranks. Null where no tensor can pass through RESHAPE.
std::optional<RandomGraph> withComputedShapes(const RandomGraph& graph, uint64_t seed);

// A model that computes the graph in both branches of an IF. It has one input more, the first,
// which chooses the branch.
RandomGraph inBranches(const RandomGraph& graph);

// A model that computes the graph twice, in the body of a WHILE. Its first inputs are what its
// outputs begin as.
RandomGraph inLoop(const RandomGraph& graph);

}  // namespace hearth::runtime
