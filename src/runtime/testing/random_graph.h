// SPDX-License-Identifier: Apache-2.0
// For tests: random models whose results are known, with a bound for how far the result of another
// right implementation may be from them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/model.h"

namespace hearth::runtime {

struct RandomGraph {
  // Valid, with all shapes known.
  std::shared_ptr<const graph::Model> model;
  std::vector<std::vector<uint8_t>> inputs;  // content, by input of the model
  // What the documented formulas give (ops/testing/plain_operations.h), operation by operation; by
  // output of the model.
  std::vector<std::vector<uint8_t>> outputs;
  // By output: how far a real number may be from its own. Integers and truth values are exact.
  std::vector<double> tolerances;
};

// `operations` operations over all operand types; the same arguments give the same graph.
//
// Tolerances follow the values through the graph: each operation passes on what its inputs may be
// off by, times how steep it is, and adds its own rounding. Operations with jumps (comparisons,
// rounding to integers, the place of the greatest) are given exact inputs only.
RandomGraph makeRandomGraph(uint64_t seed, size_t operations);

}  // namespace hearth::runtime
