// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/found_corruptions.h"

namespace hearth::cpu {

FoundCorruptions::FoundCorruptions(cache::SegmentStore& store)
    : handler_(store.addCorruptionHandler([found = found_](const cache::SegmentKey& key) {
        const std::lock_guard lock(found->mutex);
        found->keys.insert(key);
        ++found->count;
      })) {}

bool FoundCorruptions::contains(const cache::SegmentKey& key) const {
  const std::lock_guard lock(found_->mutex);
  return found_->keys.contains(key);
}

}  // namespace hearth::cpu
