// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// One part of a model, made ready. Indices are operands of the whole model's main subgraph.
struct CompoundStep {
  std::shared_ptr<hal::PreparedModel> prepared;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::string name = "step";  // for traces
};

// Several prepared models that together are one, for callers a prepared model like any other. Steps
// run one after the other; what they hand on lies in one shared memory of each execution. kOpFailed
// when a step hands on a tensor of unknown size that is no output of the model.
Result<std::shared_ptr<hal::PreparedModel>> makeCompoundModel(
    std::shared_ptr<const graph::Model> whole, std::vector<CompoundStep> steps);

}  // namespace hearth::runtime
