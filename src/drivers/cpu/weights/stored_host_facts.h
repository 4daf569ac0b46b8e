// SPDX-License-Identifier: Apache-2.0
// The facts about the host (platform/host_facts.h) that a store keeps for the next process.
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::cpu {

// Adopts the facts from the store that this process does not know yet, if a process with the same
// driver, XNNPACK and CPU left them there. Thread-safe.
void recallHostFacts(cache::SegmentStore& store);

// Writes the facts of this process to the store, in the background. Does nothing when the store had
// all of them. Thread-safe.
void rememberHostFacts(const std::shared_ptr<cache::SegmentStore>& store);

}  // namespace hearth::cpu
