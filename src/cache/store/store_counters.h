// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

#include "base/mutex.h"

namespace hearth::cache {

// What happened since the store was opened in this process.
struct StoreCounters {
  uint64_t segmentsFound = 0;
  uint64_t segmentsWritten = 0;
  uint64_t bytesWritten = 0;
  uint64_t segmentsCorrupt = 0;
  // Read to the end and found right, in the background or at the exit.
  uint64_t segmentsChecked = 0;
  uint64_t bytesChecked = 0;  // what these checks read
  uint64_t bytesHashed = 0;   // by contentHash
};

// Counts. Thread-safe.
class StoreTally {
 public:
  void add(uint64_t StoreCounters::* what, uint64_t amount = 1) {
    const std::lock_guard lock(mutex_);
    counters_.*what += amount;
  }
  StoreCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  mutable base::Mutex mutex_;
  StoreCounters counters_;
};

}  // namespace hearth::cache
