// SPDX-License-Identifier: Apache-2.0
// A plan: the nodes that run a model on this CPU, and where every tensor lies while they do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/platform/read_slack.h"

namespace hearth::cpu {

// Memory of one tensor. Several tensors may share memory: then all but one are aliases of a root.
struct Value {
  enum class Place : uint8_t {
    kArena,     // activation memory of the execution context
    kInput,     // the client's memory for graph input `index`
    kOutput,    // the client's memory for graph output `index`
    kConstant,  // `constant`, never written
  };
  Place place = Place::kArena;
  uint32_t index = 0;  // of kConstant: the operand
  const uint8_t* constant = nullptr;
  uint64_t bytes = 0;
  uint64_t writeSlack = 0;   // bytes behind it that a kernel overwrites
  ValueId root = 0;          // itself when it is no alias
  uint64_t rootOffset = 0;   // bytes from the root's start
  uint64_t arenaOffset = 0;  // roots in kArena, after planArena()
  int32_t firstNode = -1;    // first and last node that touches it (roots)
  int32_t lastNode = -1;
  std::string name;  // for people
};

// One step: how its kernel is made, and which values it touches.
struct Node {
  uint32_t operation = 0;        // index in the model's main subgraph
  const char* name = "";         // the operation's, for traces
  const char* kernel = "";       // "xnnpack", "own" or "reference"
  std::vector<ValueId> inputs;   // read; all of them stay alive until the node has run
  std::vector<ValueId> outputs;  // written
  // Inputs (positions) whose memory output 0 may take over when nobody reads them afterwards.
  std::vector<uint32_t> inPlaceInputs;
  // Bytes of our own file mappings that create() packs and nobody reads afterwards: their pages
  // are handed back as soon as it has.
  std::vector<std::span<const uint8_t>> packedSources;
  // Makes the kernel of one context. Thread-safe; packs weights the first time. kUnsupported means
  // that XNNPACK refuses these parameters: the operation is then planned with its reference kernel.
  std::function<Result<std::unique_ptr<Kernel>>()> create;
  // The same for another kernel, which may be the faster one on some machines; null where there is
  // none. Tried when the model has been used for a while.
  std::function<Result<std::unique_ptr<Kernel>>()> createOther;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Node> nodes;
  uint64_t arenaBytes = 0;

  // The value whose memory `id` lies in, and where in it.
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

// Gives every arena root its offset: values that live at the same time never overlap, and an output
// takes over an input's memory where its node allows. Sets arenaBytes. Error kResourceExhausted...
// kOutOfMemory when `limit` (0 = none) is exceeded, naming the largest tensor alive at the peak.
Status planArena(Plan* plan, uint64_t limit);

}  // namespace hearth::cpu
