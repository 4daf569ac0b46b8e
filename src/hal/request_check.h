// SPDX-License-Identifier: Apache-2.0
// What every driver checks before it computes: whether the request fits the model.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ops/interpreter.h"

namespace hearth::hal {

// A request whose arguments are plain memory. Holds the pools that the pointers refer to.
struct BoundRequest {
  std::vector<ops::RunArgument> inputs;
  std::vector<ops::RunArgument> outputs;
  uint64_t loopTimeout = 0;
  std::vector<memory::PoolRef> pools;
};

// Checks counts, ranges, dimensions and lengths against the main subgraph, and turns arguments into
// pointers, of ranges that overlap where arguments do (joinMemories()). Inputs get complete
// dimensions, outputs what model and request together determine. A length must match the dimensions
// exactly, unless they are those of an output and not complete. An input with unknown dimensions
// that the request does not complete is empty if its length is 0. Errors: kBadData, which names the
// argument, also for buffer tokens; kOpFailed for a pool that cannot be mapped or an output in a
// pool that cannot be written; those of joinMemories().
Result<BoundRequest> checkRequest(const graph::Subgraph& main, const Request& request);

// Where the bytes of a kPool argument lie. kBadData when there is no pool, or the range is outside
// it; kOpFailed for a pool that is not mapped, or an output in a pool that cannot be written.
Result<uint8_t*> addressOf(const Argument& argument, bool isInput);

// kOpFailed when a pool of the model is not mapped into this process.
Status checkPoolsMapped(const graph::Model& model);

// kOpFailed when bytes of the model's constants were lost, so that what was computed or packed from
// them may be wrong. Cheap while the process has lost nothing.
Status checkPoolsWhole(const graph::Model& model);

// kOpFailed when bytes of memories that arguments lie in were lost, as when somebody truncated
// their file during a computation. As cheap.
Status checkMemoriesWhole(std::span<const memory::PoolRef> memories);

}  // namespace hearth::hal
