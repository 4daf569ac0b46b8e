// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

namespace hearth::cpu {

std::optional<base::Sha256Digest> PackingSource::content(const TagsOf& tagsOf) const {
  base::Sha256 hash;
  hash.update(attributes);
  for (const Range& range : ranges) {
    const auto tags = tagsOf(range);
    if (!tags) return std::nullopt;
    hash.update(tags->name());
  }
  return hash.finish();
}

}  // namespace hearth::cpu
