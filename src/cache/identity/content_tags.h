// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/sha256.h"
#include "base/universal_hash.h"

namespace hearth::cache {

// The bytes that have a tag of their own.
inline constexpr uint64_t kTagBlock = uint64_t{64} << 10;

// A part of a content that does not count: two contents that differ in it only have the same digest
// and the same tags. Whole MiBs of it are not read, and the rest counts as zeros.
struct ContentGap {
  uint64_t offset = 0;  // from the content's beginning
  uint64_t size = 0;
};

// Tags (base/universal_hash.h) of a file's content under the key of a store. They show in a
// fraction of SHA-256's time whether the store has seen the content, or parts of it, before. They
// mean nothing outside the store, whose key nobody but its user can read. hashContent() and
// tagContent() make them. Value type.
struct ContentTags {
  uint64_t size = 0;                             // of the content, in bytes
  std::vector<base::UniversalHash::Tag> blocks;  // of each kTagBlock bytes
  bool operator==(const ContentTags&) const = default;

  // The name under which a store keeps the content's digest.
  base::Sha256Digest name() const;
};

}  // namespace hearth::cache
