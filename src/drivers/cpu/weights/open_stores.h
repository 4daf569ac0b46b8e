// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "cache/store/segment_store.h"
#include "hal/device.h"

namespace hearth::cpu {

// An exiting process waits this long for work without progress, such as on a disk or a network file
// system that hangs.
inline constexpr std::chrono::seconds kExitPatience{10};

// Opens the store that the options name, else the one that the environment names. The latest store
// stays open for the next model. The first call registers flushBeforeExit() for the process's exit.
// Never null: where the options are wrong the store is an AnonymousStore. Thread-safe.
std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options);

// Returns when the stores that openStore() gave have written all that was packed before.
// Thread-safe.
void flushStores();

// The same at the end of the process, unless base::worksAtExit() declines: without it a short run
// would leave nothing to the next one. Gives up on a store that for `patience` neither finishes a
// piece of work nor writes, and then returns false. Other threads may go on using the stores.
bool flushBeforeExit(std::chrono::nanoseconds patience);

// Opens the store that openStore() would open, for reading only. A store that does not exist is not
// created: its writability() is kGone then.
std::shared_ptr<cache::SegmentStore> openStoreForLooking(const hal::PrepareOptions& options);

}  // namespace hearth::cpu
