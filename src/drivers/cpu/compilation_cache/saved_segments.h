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

// The store's segments that a model from a compilation cache uses. Their files may be truncated or
// found wrong while the model is in use, and their bytes may exist nowhere else. Thread-safe.
class SavedSegments final : public hal::LosableMemory {
 public:
  explicit SavedSegments(const SavedModel& saved);

  uint64_t replacements() const override { return replacements_; }
  Status replaceLost() override;

  // A count that changes whenever bytes of any model may have been lost.
  uint64_t lossesSoFar() const;
  // Calls SegmentStore::checkFound(); for a forked child.
  void checkFound() const {
    if (store_ != nullptr) store_->checkFound();
  }
  // How many bytes replaceLost() has replaced.
  uint64_t replacedBytes() const { return replacedBytes_; }

 private:
  Status checkScales() const;

  const std::vector<std::shared_ptr<PackedSegment>> segments_;
  // The segment of scales that the model copied: if it was wrong then, the copy stays wrong.
  const std::optional<cache::SegmentKey> scales_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<cache::SegmentStore> store_;  // null without segments, as corruptions_
  const std::shared_ptr<const FoundCorruptions> corruptions_;
  base::Mutex mutex_;  // held by replaceLost()
  // lossesSoFar() up to which losses are replaced. The first replaceLost() looks in any case, since
  // the store may have found segments wrong while the model was prepared.
  std::atomic<uint64_t> checkedLosses_ = UINT64_MAX;
  std::atomic<uint64_t> replacements_ = 0;
  std::atomic<uint64_t> replacedBytes_ = 0;
};

}  // namespace hearth::cpu
