// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

  // A digest that two sources have in common only if the same is packed from the same bytes. Of the
  // constants it knows the blocks that they lie in, so that nothing is read again, and a change
  // right beside a constant changes it, too. `tags` has those of each pool; none when those of a
  // pool are not there.
  std::optional<base::Sha256Digest> content(std::span<const cache::ContentTags> tags) const;
};

}  // namespace hearth::cpu
