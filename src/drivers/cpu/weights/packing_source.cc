// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

namespace hearth::cpu {

std::optional<base::Sha256Digest> PackingSource::content(
    std::span<const cache::ContentTags> tags) const {
  base::Sha256 hash;
  hash.update(attributes);
  for (const Range& range : ranges) {
    if (range.pool >= tags.size() || range.length == 0) return std::nullopt;
    const uint64_t first = range.offset / cache::kTagBlock;
    const uint64_t last = (range.offset + range.length - 1) / cache::kTagBlock;
    const std::vector<base::UniversalHash::Tag>& all = tags[range.pool].blocks;
    if (last >= all.size()) return std::nullopt;
    const uint64_t within = range.offset % cache::kTagBlock;
    hash.update(&within, sizeof within);
    hash.update(&range.length, sizeof range.length);
    hash.update(all.data() + first, static_cast<size_t>(last - first + 1) * sizeof all[0]);
  }
  return hash.finish();
}

}  // namespace hearth::cpu
