// SPDX-License-Identifier: Apache-2.0
// What the map of compilation caches is made of.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/sha256.h"

namespace hearth::cache {

// Whose cache files are meant. Files of another driver build, user or token are never consulted.
struct CacheOwner {
  base::Sha256Digest build{};  // of driver and libraries
  uid_t uid = 0;
  base::Sha256Digest token{};
  bool operator==(const CacheOwner&) const = default;
};

// What was cached under a token: a digest of all bytes of model and data cache, and how many bytes
// there are, so that nobody has to read files that cannot be the ones.
struct CachedContent {
  base::Sha256Digest digest{};
  uint64_t modelBytes = 0;
  uint64_t dataBytes = 0;
  bool operator==(const CachedContent&) const = default;
};

// One entry of the map.
struct KnownContent {
  CacheOwner owner;
  CachedContent content;
  int64_t used = 0;  // nanoseconds since 1970
};

}  // namespace hearth::cache
