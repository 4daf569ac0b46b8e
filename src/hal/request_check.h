// SPDX-License-Identifier: Apache-2.0
// What every driver checks before it computes: does the request fit the model.
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ops/interpreter.h"

namespace hearth::hal {

// A request whose arguments are plain memory. Holds the pools that the pointers lie in.
struct BoundRequest {
  std::vector<ops::RunArgument> inputs;
  std::vector<ops::RunArgument> outputs;
  uint64_t loopTimeout = 0;
  std::vector<memory::PoolRef> pools;
};

// Checks counts, ranges, dimensions and lengths against the main subgraph, and resolves arguments
// to pointers. Inputs come out with complete dimensions; outputs with what model and request
// together know. A length must be exactly that of the dimensions, unless an output's are not
// complete. An input whose unknown dimensions the request leaves open is taken as empty when its
// length is 0. kBadData names the argument; kOpFailed for a pool that cannot be mapped or an output
// in one that cannot be written; kBadData for buffer tokens.
Result<BoundRequest> checkRequest(const graph::Subgraph& main, const Request& request);

// kOpFailed when a pool of the model is not mapped into this process.
Status checkPoolsMapped(const graph::Model& model);

// kOpFailed when bytes of the model's constants were lost, so that what was computed, or packed,
// from them may be wrong. Cheap as long as the process has lost nothing.
Status checkPoolsWhole(const graph::Model& model);

}  // namespace hearth::hal
