// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {

// The packed weights of one graph that a store has, by one of its plans. Value type.
struct StoredPacking {
  bool hasGraph = false;  // false: the plan is for other graphs only, and the rest is empty
  bool isWhole = false;   // whether the plan names all places of the graph
  // Why a segment that the plan names is not there; kNone when all are.
  cache::StoreReason missing = cache::StoreReason::kNone;
  std::vector<cache::SegmentRef> segments;
  std::vector<std::pair<WeightPlace, PackedPlace>> places;  // those in `segments`

  uint64_t bytes() const;
};

// Maps the segments of a graph. Error: kBadData when the plan's bytes are malformed.
Result<StoredPacking> loadStoredPacking(cache::SegmentStore& store, const cache::LoadedPlan& plan,
                                        const base::Sha256Digest& graph);

}  // namespace hearth::cpu
