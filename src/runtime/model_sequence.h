// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// One prepared part of a model. `inputs` and `outputs` are operands of the whole model's main
// subgraph.
struct SequenceStep {
  std::shared_ptr<hal::PreparedModel> prepared;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::string name = "step";  // for traces
};

// Joins the prepared parts of a model to one prepared model. Steps run one after the other; each
// execution has one shared memory for the tensors between them, and memory that grows for each of
// unknown size: a step whose output does not fit runs again.
Result<std::shared_ptr<hal::PreparedModel>> makeModelSequence(
    std::shared_ptr<const graph::Model> whole, std::vector<SequenceStep> steps);

}  // namespace hearth::runtime
