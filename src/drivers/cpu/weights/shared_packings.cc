// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/shared_packings.h"

#include <algorithm>

#include "base/immortal.h"

namespace hearth::cpu {

SharedPackings& SharedPackings::instance() {
  static constinit base::Immortal<SharedPackings> packings;
  return packings.get();
}

SharedPacking SharedPackings::find(const base::Sha256Digest& source) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(source);
  if (entry == entries_.end()) return {};
  return {entry->second.segment.lock(), entry->second.seed};
}

void SharedPackings::add(const base::Sha256Digest& source, const SharedPacking& packing) {
  const std::lock_guard lock(mutex_);
  entries_[source] = {packing.segment, packing.seed};
  if (entries_.size() < nextSweep_) return;
  std::erase_if(entries_, [](const auto& entry) { return entry.second.segment.expired(); });
  nextSweep_ = std::max<size_t>(64, 2 * entries_.size());
}

}  // namespace hearth::cpu
