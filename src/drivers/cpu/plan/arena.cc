// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drivers/cpu/plan/plan.h"
#include "memory/arena.h"

namespace hearth::cpu {
namespace {

constexpr uint64_t kAlignment = 64;

void findLiveRanges(Plan* plan) {
  for (Value& value : plan->values) value.firstNode = value.lastNode = -1;
  for (size_t n = 0; n < plan->nodes.size(); ++n) {
    const Node& node = plan->nodes[n];
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (ValueId id : *list) {
        Value& root = plan->values[plan->resolve(id).root];
        if (root.firstNode < 0) root.firstNode = static_cast<int32_t>(n);
        root.lastNode = static_cast<int32_t>(n);
      }
    }
  }
}

// Lets outputs take over the memory of inputs that die at the same node.
void shareInPlace(Plan* plan) {
  for (size_t n = 0; n < plan->nodes.size(); ++n) {
    Node& node = plan->nodes[n];
    if (node.outputs.empty()) continue;
    const ValueId outputId = node.outputs[0];
    Value& output = plan->values[outputId];
    if (output.root != outputId || output.place != Value::Place::kArena) continue;
    if (output.firstNode != static_cast<int32_t>(n)) continue;
    for (uint32_t position : node.inPlaceInputs) {
      const auto [rootId, offset] = plan->resolve(node.inputs[position]);
      Value& root = plan->values[rootId];
      if (rootId == outputId || root.place != Value::Place::kArena) continue;
      if (root.lastNode != static_cast<int32_t>(n) || root.bytes != output.bytes) continue;
      if (offset != 0) continue;
      // The same root may be read twice (x + x): the kernel reads each element before it writes it.
      output.root = rootId;
      root.lastNode = output.lastNode;
      root.writeSlack = std::max(root.writeSlack, output.writeSlack);
      break;
    }
  }
}

}  // namespace

Status planArena(Plan* plan, uint64_t limit) {
  findLiveRanges(plan);
  shareInPlace(plan);
  std::vector<ValueId> roots;
  std::vector<memory::ArenaBlock> blocks;
  for (ValueId id = 0; id < plan->values.size(); ++id) {
    const Value& value = plan->values[id];
    if (value.place != Value::Place::kArena || value.root != id || value.firstNode < 0) continue;
    const uint64_t bytes =
        (value.bytes + kReadSlack + value.writeSlack + kAlignment - 1) / kAlignment * kAlignment;
    roots.push_back(id);
    blocks.push_back({bytes, value.firstNode, value.lastNode});
  }
  const auto bytes = memory::placeBlocks(blocks, limit);
  if (!bytes) {
    const Value& value = plan->values[roots[bytes.error()]];
    return fail(ErrorCode::kOutOfMemory,
                "The activations need more than the limit of {} bytes; the tensor \"{}\" of {} "
                "bytes does not fit.",
                limit, value.name, value.bytes);
  }
  plan->arenaBytes = *bytes;
  for (size_t i = 0; i < roots.size(); ++i) plan->values[roots[i]].arenaOffset = blocks[i].offset;
  return {};
}

}  // namespace hearth::cpu
