// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/saved_segments.h"

#include <cstring>
#include <span>

#include "cache/identity/content_hash.h"
#include "graph/model_bytes.h"
#include "memory/sigbus_guard.h"

namespace hearth::cpu {

SavedSegments::SavedSegments(const SavedModel& saved)
    : segments_(saved.segments),
      scales_(saved.copiedScales),
      model_(saved.model),
      store_(saved.store),
      corruptions_(saved.corruptions) {}

uint64_t SavedSegments::lossesSoFar() const {
  return memory::lossCount() + (corruptions_ != nullptr ? corruptions_->count() : 0);
}

Status SavedSegments::checkScales() const {
  if (!scales_ || !corruptions_->contains(*scales_)) return {};
  // The store also reports files that it could not sync; their bytes, and so the copy, are right.
  const std::vector<float> scales = graph::channelScales(*model_);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(scales.data()),
                                       scales.size() * sizeof(float));
  if (cache::contentSegmentKey(bytes) == *scales_) return {};
  return fail(
      ErrorCode::kOpFailed,
      "Scales of the model were wrong when it was prepared, since their file was changed or "
      "cannot be read. The model is to be compiled again.");
}

Status SavedSegments::replaceLost() {
  if (lossesSoFar() == checkedLosses_) return {};
  const std::lock_guard lock(mutex_);
  const uint64_t losses = lossesSoFar();
  HEARTH_TRY(checkScales());
  std::vector<std::shared_ptr<PackedSegment>> wrong;
  for (const auto& segment : segments_) {
    // Null after repair(): the memory is private then and cannot be lost.
    const cache::SegmentRef old = segment->published();
    if (old == nullptr ||
        (!segment->hasLosses() && !old->isCorrupt() && !corruptions_->contains(old->key())))
      continue;
    // From now on the store gives this mapping to no model, and opens the file anew.
    old->markCorrupt();
    wrong.push_back(segment);
  }
  for (const auto& segment : wrong) {
    const cache::SegmentRef old = segment->published();
    const cache::FoundSegment found = store_->find(old->key());
    const Status repaired = segment->repair([&](uint8_t* bytes) -> Status {
      if (found && found.segment->size() == segment->size())
        std::memcpy(bytes, found.segment->data(), segment->size());
      // The key is the digest of the content. It also fits the old bytes where the store only could
      // not sync the file.
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
