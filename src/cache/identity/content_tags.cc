// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/content_tags.h"

#include "cache/identity/key_hash.h"

namespace hearth::cache {

base::Sha256Digest ContentTags::name() const {
  base::Sha256 hash;
  hash.update("tagged content", 14);
  addToKey(hash, size);
  hash.update(blocks.data(), blocks.size() * sizeof(base::UniversalHash::Tag));
  return hash.finish();
}

}  // namespace hearth::cache
