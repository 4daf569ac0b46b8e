// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "base/mutex.h"
#include "cache/store/segment_store.h"

namespace hearth::cpu {

// Collects the segments that a store finds wrong while this lives. Thread-safe.
class FoundCorruptions {
 public:
  explicit FoundCorruptions(cache::SegmentStore& store);

  uint64_t count() const { return found_->count; }
  bool contains(const cache::SegmentKey& key) const;

 private:
  // Shared with the handler: a call of it on a thread of the store may outlive this.
  struct Found {
    std::atomic<uint64_t> count = 0;
    base::Mutex mutex;
    std::set<cache::SegmentKey> keys;
  };
  const std::shared_ptr<Found> found_ = std::make_shared<Found>();
  const std::shared_ptr<void> handler_;
};

}  // namespace hearth::cpu
