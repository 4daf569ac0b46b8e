// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

#include "cache/identity/content_hash.h"

namespace hearth::cpu {

std::optional<base::Sha256Digest> PackingSource::content(
    std::span<const std::vector<base::Sha256Digest>> blocks) const {
  base::Sha256 hash;
  hash.update(attributes);
  for (const Range& range : ranges) {
    if (range.pool >= blocks.size() || range.length == 0) return std::nullopt;
    const uint64_t first = range.offset / cache::kHashBlock;
    const uint64_t last = (range.offset + range.length - 1) / cache::kHashBlock;
    const std::vector<base::Sha256Digest>& all = blocks[range.pool];
    if (last >= all.size()) return std::nullopt;
    const uint64_t within = range.offset % cache::kHashBlock;
    hash.update(&within, sizeof within);
    hash.update(&range.length, sizeof range.length);
    hash.update(all.data() + first, static_cast<size_t>(last - first + 1) * sizeof all[0]);
  }
  return hash.finish();
}

}  // namespace hearth::cpu
