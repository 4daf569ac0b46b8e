// SPDX-License-Identifier: Apache-2.0
// The execution graph of a model: the nodes that run it on this CPU, and where every tensor lies
// while they do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/platform/read_slack.h"

namespace hearth::cpu {

class WidenedSubgraph;

// Memory of one tensor. Tensors that share memory are aliases of one root.
struct Value {
  enum class Place : uint8_t {
    kArena,     // activation memory of the execution context
    kInput,     // the client's memory for graph input `index`
    kOutput,    // the client's memory for graph output `index`
    kConstant,  // `constant`, never written
  };
  Place place = Place::kArena;
  uint32_t index = 0;  // of kConstant: the operand of the model
  const uint8_t* constant = nullptr;
  uint64_t bytes = 0;
  uint64_t writeSlack = 0;   // bytes behind it that a kernel overwrites
  ValueId root = 0;          // of an alias the value that it lies in; else the value itself
  uint64_t rootOffset = 0;   // bytes from the root's start
  uint64_t arenaOffset = 0;  // roots in kArena, after planArena()
  int32_t firstNode = -1;    // of roots: first and last node that touches it or an alias of it
  int32_t lastNode = -1;
  std::string_view name;  // for people; of the model, which outlives the plan
};

// One step: how its kernel is built, and which values it touches.
struct Node {
  uint32_t operation = 0;        // index in the model's main subgraph
  const char* name = "";         // of the operation, for traces
  const char* kernel = "";       // "xnnpack", "own" or "reference"
  std::string whySlow;           // of "reference": why no faster kernel runs it, in a few words
  std::vector<ValueId> inputs;   // read; all of them stay alive until the node has run
  std::vector<ValueId> outputs;  // written
  // Positions in `inputs` whose memory output 0 may take over if no later node reads them.
  std::vector<uint32_t> inPlaceInputs;
  // Bytes of our own file mappings that create() packs and no kernel reads: their pages are
  // released after packing.
  std::vector<std::span<const uint8_t>> packedSources;
  // Builds a kernel for one context, and packs its weights the first time. Thread-safe. Error:
  // kUnsupported when XNNPACK refuses these parameters; the execution graph is then built again
  // with the reference kernel of the operation.
  std::function<Result<std::unique_ptr<Kernel>>()> create;
  // The same for a second kernel over the same values, which is faster on some machines; null where
  // there is none. It is tried when the model has been used for a while.
  std::function<Result<std::unique_ptr<Kernel>>()> createOther;

  // Makes a kernel of ours the first one, and the node's own the second.
  void preferOwn(std::function<Result<std::unique_ptr<Kernel>>()> own) {
    createOther = std::exchange(create, std::move(own));
  }
};

struct Plan {
  // What nodes refer to where the subgraph of the model was widened; else null.
  std::shared_ptr<const WidenedSubgraph> widened;
  std::vector<Value> values;
  std::vector<Node> nodes;
  uint64_t arenaBytes = 0;

  // The root value whose memory `id` lies in, and the offset there in bytes.
  struct Place {
    ValueId root;
    uint64_t offset;
  };
  Place resolve(ValueId id) const {
    uint64_t offset = 0;
    while (values[id].root != id) {
      offset += values[id].rootOffset;
      id = values[id].root;
    }
    return {id, offset};
  }
};

// Gives every root in the arena its offset and sets arenaBytes. Values that live at the same time
// never overlap; an output takes over an input's memory where its node allows it. Error:
// kOutOfMemory when `limit` bytes (0 = no limit) are exceeded; it names the tensor that does not
// fit.
Status planArena(Plan* plan, uint64_t limit);

}  // namespace hearth::cpu
