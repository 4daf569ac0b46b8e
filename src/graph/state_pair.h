// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::graph {

// A tensor that keeps its value between runs (an LSTM's memory): what output `output` gives is the
// value of input `input` at the next run. Positions among the inputs and outputs of the main
// subgraph; the pairs of a model are its last inputs and outputs, behind those that clients see.
struct StatePair {
  uint32_t input = 0;
  uint32_t output = 0;
  std::vector<uint8_t> initialValue;  // as many bytes as the input has; empty = zero bytes
};

}  // namespace hearth::graph
