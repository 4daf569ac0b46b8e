// SPDX-License-Identifier: Apache-2.0
// The facts about the host (platform/host_facts.h) that a store keeps for the next process.
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::cpu {

// Takes them from the store, if a process with the same driver, XNNPACK and CPU left them there and
// they are not known yet. Thread-safe.
void recallHostFacts(cache::SegmentStore& store);

// Leaves there what this process found out, in the background. Nothing happens when the store had
// it. Thread-safe.
void rememberHostFacts(const std::shared_ptr<cache::SegmentStore>& store);

}  // namespace hearth::cpu
