// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// A part of a model as a model of its own. `inputs` and `outputs` are operand indices in the whole
// model's main subgraph, in the order of the part's own inputs and outputs.
struct StepModel {
  std::shared_ptr<const Model> model;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

// Copies the given operations into a model. Tensors that other steps or the client read become
// outputs. Large constants stay where they are; subgraphs and small constants are copied.
StepModel makeStepModel(const Model& whole, const std::vector<uint32_t>& operations);

}  // namespace hearth::graph
