// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/sha256.h"
#include "cache/identity/content_tags.h"

namespace hearth::cpu {

// What a packing is made from: where its constants lie in the model's pools, and everything else as
// a digest. Value type.
struct PackingSource {
  struct Range {
    uint32_t pool = 0;
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  base::Sha256Digest
      attributes{};  // operation, parameters, quantisation, constants that are copied
  std::vector<Range> ranges;

  // A digest that two sources have in common only if the same is packed from the same bytes,
  // wherever these lie. `tagsOf` gives the tags of the bytes of a range; none when it has none.
  using TagsOf = std::function<std::optional<cache::ContentTags>(const Range& range)>;
  std::optional<base::Sha256Digest> content(const TagsOf& tagsOf) const;
};

}  // namespace hearth::cpu
