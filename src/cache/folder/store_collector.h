// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "cache/object/store_folder.h"
#include "cache/plan/plan_file.h"

namespace hearth::cache {

struct PruneOptions {
  uint64_t maxBytes = UINT64_MAX;                                // remove until no more is on disk
  std::chrono::seconds olderThan = std::chrono::seconds::max();  // and plans unused for longer
  // Segments of no plan are the work of a start that did not finish; the next start finds them
  // again.
  std::chrono::seconds orphansOlderThan = std::chrono::hours(24);
  // Temporary files without a lock. They are spared at first, since a process creates a file before
  // it locks it.
  std::chrono::seconds leftoversOlderThan = std::chrono::seconds(60);
};

struct PruneReport {
  uint64_t plans = 0, segments = 0, temporaries = 0;
  uint64_t bytesFreed = 0, bytesLeft = 0;
};

// Evicts: removes from a writable store, in this order: leftovers of killed processes; damaged
// plans; segments of no plan beyond their age; plans that were unused for too long, with the
// segments that no other plan uses. Then, while there is too much: segments of no plan, oldest
// first, but none of the last ten minutes; plans of other builds than `current`; all other plans,
// least recently used first. A plan that a loaded model uses stays, with its segments. Mappings of
// removed segments stay valid. One process collects at a time; the caller holds
// BuildLock::tryLockCollection.
PruneReport collect(const StoreFolder& folder, const BuildFingerprint& current,
                    const PruneOptions& options);

}  // namespace hearth::cache
