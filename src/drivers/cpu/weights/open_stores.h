// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "cache/store/segment_store.h"
#include "hal/device.h"

namespace hearth::cpu {

// The store that the options name, else the environment's. The latest one stays open for the next
// model, and a process that exits calls flushBeforeExit() first. Thread-safe.
std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options);

// Returns when all that was packed before is written to the stores that openStore() gave.
// Thread-safe.
void flushStores();

// The same before the process ends, unless base::worksAtExit() declines it: without that a short
// run would leave nothing to the next one. Gives up on a store that for `patience` neither finishes
// a piece of work nor writes; false then. Other threads may go on using the stores.
bool flushBeforeExit(std::chrono::nanoseconds patience);

// The same store without leave to write, which is not made when it is not there: then its
// writability() is kGone.
std::shared_ptr<cache::SegmentStore> openStoreForLooking(const hal::PrepareOptions& options);

}  // namespace hearth::cpu
