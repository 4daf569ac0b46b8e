// SPDX-License-Identifier: Apache-2.0
// The entries of the map of compilation caches.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/sha256.h"

namespace hearth::cache {

// Who owns cache files. Files of another driver build, user or token are never looked at.
struct CacheOwner {
  base::Sha256Digest build{};  // of the driver and its libraries
  uid_t uid = 0;
  base::Sha256Digest token{};
  bool operator==(const CacheOwner&) const = default;
};

// What was cached under a token: a digest of all bytes of model and data cache, and the sizes of
// both, so that files of other sizes need not be read.
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
