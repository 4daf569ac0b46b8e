// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/sha256.h"
#include "cache/object/store_key.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/packing_map.h"

namespace hearth::cpu {

// A plan that is being composed for the store, with the keys of the segments that it names. Used by
// one thread at a time.
class PlanDraft {
 public:
  // The published places of one graph. The plan lacks places of it unless `isAllPacked` and all are
  // published.
  PlanDraft(const base::Sha256Digest& graph, const std::map<WeightPlace, PackedPlace>& places,
            bool isAllPacked);

  // Adds what a plan in the store has for other graphs. A malformed one has nothing.
  void addOthers(const cache::LoadedPlan& plan);

  const PackingMap& plan() const { return plan_; }
  // One key for each segment of the plan.
  std::span<const cache::SegmentKey> keys() const { return keys_; }

 private:
  uint32_t numberOf(const cache::SegmentKey& key, uint64_t size);

  PackingMap plan_;
  std::vector<cache::SegmentKey> keys_;
  std::unordered_map<cache::SegmentKey, uint32_t> numbers_;
};

}  // namespace hearth::cpu
