// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {
namespace {

constexpr uint64_t kAlignment = 64;

struct Interval {
  ValueId value;
  uint64_t bytes;
};

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
  std::vector<Interval> intervals;
  for (ValueId id = 0; id < plan->values.size(); ++id) {
    const Value& value = plan->values[id];
    if (value.place != Value::Place::kArena || value.root != id || value.firstNode < 0) continue;
    const uint64_t bytes =
        (value.bytes + kReadSlack + value.writeSlack + kAlignment - 1) / kAlignment * kAlignment;
    intervals.push_back({id, bytes});
  }
  // Largest first, each into the tightest gap between the values that live at the same time.
  std::stable_sort(intervals.begin(), intervals.end(),
                   [](const Interval& a, const Interval& b) { return a.bytes > b.bytes; });
  std::vector<Interval> placed;
  plan->arenaBytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>> live;
  for (const Interval& interval : intervals) {
    Value& value = plan->values[interval.value];
    live.clear();
    for (const Interval& other : placed) {
      const Value& neighbour = plan->values[other.value];
      if (neighbour.firstNode <= value.lastNode && value.firstNode <= neighbour.lastNode)
        live.emplace_back(neighbour.arenaOffset, neighbour.arenaOffset + other.bytes);
    }
    std::sort(live.begin(), live.end());
    uint64_t best = UINT64_MAX;
    uint64_t bestGap = UINT64_MAX;
    uint64_t cursor = 0;
    for (const auto& [begin, end] : live) {
      if (begin > cursor && begin - cursor >= interval.bytes && begin - cursor < bestGap) {
        bestGap = begin - cursor;
        best = cursor;
      }
      cursor = std::max(cursor, end);
    }
    value.arenaOffset = best == UINT64_MAX ? cursor : best;
    uint64_t end;
    const bool isTooFar = __builtin_add_overflow(value.arenaOffset, interval.bytes, &end);
    if (isTooFar || (limit != 0 && end > limit))
      return fail(ErrorCode::kOutOfMemory,
                  "The activations need more than the limit of {} bytes; the tensor \"{}\" of {} "
                  "bytes does not fit.",
                  limit, value.name, value.bytes);
    plan->arenaBytes = std::max(plan->arenaBytes, end);
    placed.push_back(interval);
  }
  return {};
}

}  // namespace hearth::cpu
