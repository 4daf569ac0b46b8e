// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_draft.h"

namespace hearth::cpu {

PlanDraft::PlanDraft(const base::Sha256Digest& graph,
                     const std::map<WeightPlace, PackedPlace>& places, bool isAllPacked) {
  plan_.graphs = {graph};
  bool isWhole = isAllPacked;
  for (const auto& [place, packed] : places) {
    const cache::SegmentRef segment = packed.segment->published();
    if (segment == nullptr) {
      isWhole = false;
      continue;
    }
    plan_.entries.push_back({0, place, packed.seed, numberOf(segment->key(), segment->size()),
                             packed.offset, packed.size});
  }
  if (!isWhole) plan_.partly = {0};
}

uint32_t PlanDraft::numberOf(const cache::SegmentKey& key, uint64_t size) {
  const auto [it, isNew] = numbers_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
  if (isNew) {
    keys_.push_back(key);
    plan_.segmentSizes.push_back(size);
  }
  return it->second;
}

void PlanDraft::addOthers(const cache::LoadedPlan& plan) {
  const auto known = PackingMap::parse(plan.bytes(), plan.segments().size());
  if (!known) return;
  std::unordered_map<uint32_t, uint32_t> graphs;  // numbers there and here
  for (const PackingMap::Entry& entry : known->entries) {
    const base::Sha256Digest& graph = known->graphs[entry.graph];
    if (graph == plan_.graphs.front()) continue;
    const auto [number, isNew] =
        graphs.try_emplace(entry.graph, static_cast<uint32_t>(plan_.graphs.size()));
    if (isNew) {
      plan_.graphs.push_back(graph);
      if (!known->isWhole(entry.graph)) plan_.partly.push_back(number->second);
    }
    PackingMap::Entry moved = entry;
    moved.graph = number->second;
    moved.segment = numberOf(plan.segments()[entry.segment], known->segmentSizes[entry.segment]);
    plan_.entries.push_back(moved);
  }
}

}  // namespace hearth::cpu
