// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/compilation_cache/model_cache.h"
#include "drivers/cpu/weights/found_corruptions.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "hal/interpreted_model.h"

namespace hearth::cpu {

// The store's segments that a model from a compilation cache uses, and whose bytes may be nowhere
// else: files that may be truncated, and found wrong, while the model is in use. Thread-safe.
class SavedSegments final : public hal::LosableMemory {
 public:
  explicit SavedSegments(const SavedModel& saved);

  uint64_t replacements() const override { return replacements_; }
  Status replaceLost() override;

  // Changes whenever bytes of any model may have been lost.
  uint64_t lossesSoFar() const;
  // SegmentStore::checkFound, in a forked child.
  void checkFound() const {
    if (store_ != nullptr) store_->checkFound();
  }
  // The bytes that replaceLost() has put in their places.
  uint64_t replacedBytes() const { return replacedBytes_; }

 private:
  Status checkScales() const;

  const std::vector<std::shared_ptr<PackedSegment>> segments_;
  // Of which the model has copies: what was wrong of them when it was prepared stays wrong.
  const std::optional<cache::SegmentKey> scales_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<cache::SegmentStore> store_;  // null without segments, as what follows
  const std::shared_ptr<const FoundCorruptions> corruptions_;
  base::Mutex mutex_;  // one look at a time
  // lossesSoFar() when nothing was lost here; there is a first look in any case, since bytes may
  // have been found wrong while the model was prepared.
  std::atomic<uint64_t> checkedLosses_ = UINT64_MAX;
  std::atomic<uint64_t> replacements_ = 0;
  std::atomic<uint64_t> replacedBytes_ = 0;
};

}  // namespace hearth::cpu
