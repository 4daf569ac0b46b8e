// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/result.h"
#include "cache/segment_store.h"
#include "drivers/cpu/packed_segment.h"
#include "hal/interpreted_model.h"

namespace hearth::cpu {

// The store's segments that a model from a compilation cache uses, and whose bytes may be nowhere
// else: files that may be truncated, and found wrong, while the model is in use. Thread-safe.
class SavedSegments final : public hal::LosableMemory {
 public:
  SavedSegments(std::vector<std::shared_ptr<PackedSegment>> segments,
                std::shared_ptr<cache::SegmentStore> store);

  uint64_t replacements() const override { return replacements_; }
  Status replaceLost() override;

  // Changes whenever bytes of any model may have been lost.
  uint64_t lossesSoFar() const;
  // The bytes that replaceLost() has put in their places.
  uint64_t replacedBytes() const { return replacedBytes_; }

 private:
  // What the store has found wrong. Its threads may know it longer than this.
  struct Corruptions {
    std::atomic<uint64_t> count = 1;  // the first look is one: the check may have been faster
    std::mutex mutex;
    std::set<cache::SegmentKey> keys;
  };
  bool isWrong(const PackedSegment& segment, const cache::Segment& published) const;

  const std::vector<std::shared_ptr<PackedSegment>> segments_;
  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<Corruptions> corruptions_ = std::make_shared<Corruptions>();
  std::shared_ptr<void> handler_;
  std::mutex mutex_;                         // one look at a time
  std::atomic<uint64_t> checkedLosses_ = 0;  // lossesSoFar() when nothing was lost here
  std::atomic<uint64_t> replacements_ = 0;
  std::atomic<uint64_t> replacedBytes_ = 0;
};

}  // namespace hearth::cpu
