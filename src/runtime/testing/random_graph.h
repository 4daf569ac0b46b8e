// SPDX-License-Identifier: Apache-2.0
// For tests: random models with known results, and bounds for the error of another correct
// implementation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/model.h"

namespace hearth::runtime {

struct RandomGraph {
  // Valid, with all shapes known.
  std::shared_ptr<const graph::Model> model;
  std::vector<std::vector<uint8_t>> inputs;  // content of each input of the model
  // Content of each output of the model, computed one operation at a time by the documented
  // formulas (ops/reference/kernels.h).
  std::vector<std::vector<uint8_t>> outputs;
  // By output: the largest error of a real number, compared with `outputs`. Integers and truth
  // values are exact.
  std::vector<double> tolerances;
  // By operand of the main subgraph: the greatest absolute value up to which the tolerances hold.
  std::vector<double> limits;
};

// Makes a graph of `operations` operations over all operand types. The same arguments give the same
// graph.
//
// Tolerances follow the values through the graph: each operation multiplies the error of its inputs
// by its steepness and adds its own rounding. Operations with jumps (comparisons, rounding to
// integers, the index of the greatest) get exact inputs only.
//
// `headroom`, 1 or more, makes them hold for values so many times as great, too.
RandomGraph makeRandomGraph(uint64_t seed, size_t operations, double headroom = 1);

}  // namespace hearth::runtime
