// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/saved_segments.h"

#include <cstring>
#include <utility>

#include "cache/content_hash.h"
#include "memory/lost_pages.h"

namespace hearth::cpu {

SavedSegments::SavedSegments(std::vector<std::shared_ptr<PackedSegment>> segments,
                             std::shared_ptr<cache::SegmentStore> store)
    : segments_(std::move(segments)), store_(std::move(store)) {
  if (store_ != nullptr)
    handler_ = store_->addCorruptionHandler([found = corruptions_](const cache::SegmentKey& key) {
      const std::lock_guard lock(found->mutex);
      found->keys.insert(key);
      ++found->count;
    });
}

uint64_t SavedSegments::lossesSoFar() const {
  return memory::lossCount() + corruptions_->count.load();
}

bool SavedSegments::isWrong(const PackedSegment& segment, const cache::Segment& published) const {
  if (segment.hasLosses() || published.isCorrupt()) return true;
  const std::lock_guard lock(corruptions_->mutex);
  return corruptions_->keys.contains(published.key());
}

Status SavedSegments::replaceLost() {
  if (lossesSoFar() == checkedLosses_) return {};
  const std::lock_guard lock(mutex_);
  const uint64_t losses = lossesSoFar();
  std::vector<std::shared_ptr<PackedSegment>> wrong;
  for (const auto& segment : segments_) {
    // Null once it was fetched: the memory is this process's own.
    const cache::SegmentRef old = segment->published();
    if (old == nullptr || !isWrong(*segment, *old)) continue;
    // The store gives this mapping to nobody any more, and looks for its file anew.
    old->markCorrupt();
    wrong.push_back(segment);
  }
  for (const auto& segment : wrong) {
    const cache::SegmentRef old = segment->published();
    const cache::FoundSegment found = store_->find(old->key());
    const Status repaired = segment->repair([&](uint8_t* bytes) -> Status {
      if (found && found.segment->size() == segment->size())
        std::memcpy(bytes, found.segment->data(), segment->size());
      // Its name is that of its content. A file that could only not be synced is right as it is.
      if (cache::contentSegmentKey({bytes, segment->size()}) == old->key()) return {};
      if (found) found.segment->markCorrupt();
      return fail(ErrorCode::kOpFailed, "The model is to be compiled again.");
    });
    if (!repaired)
      return fail(ErrorCode::kOpFailed,
                  "Packed weights or constants of the model were lost while it was in use, since "
                  "their file was truncated, changed or cannot be read. {}",
                  repaired.error().message());
    replacedBytes_ += segment->size();
  }
  if (!wrong.empty()) ++replacements_;
  checkedLosses_ = losses;
  return {};
}

}  // namespace hearth::cpu
