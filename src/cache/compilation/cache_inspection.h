// SPDX-License-Identifier: Apache-2.0
// Tells people what is known of a client's cache files. Changes nothing and interprets no byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/sha256.h"
#include "cache/compilation/mapping_manager.h"

namespace hearth::cache {

enum class CacheFinding {
  kVerified,    // as a driver wrote them under this key
  kEmpty,       // nothing was saved into them
  kNoMap,       // the map's database is missing or cannot be used
  kUnknown,     // the map knows nothing under this key
  kOtherKey,    // written under another key
  kWrongSize,   // not the size of any content under this key
  kWrongBytes,  // a right size with other bytes
  kUnreadable,
};

// A word for reports, for example "wrong-size".
const char* cacheFindingName(CacheFinding finding);

struct CacheInspection {
  CacheFinding finding = CacheFinding::kUnreadable;
  std::string reason;  // a sentence; empty for kVerified
  // The entry of the map, which says who wrote them; for kVerified and kOtherKey.
  std::optional<KnownContent> known;
};

// Compares a model cache and a data cache with the map. If several builds have written the same,
// `preferredBuild` is named.
CacheInspection inspectCacheFiles(MappingManager& map, const base::Sha256Digest& token,
                                  const base::Sha256Digest& preferredBuild, int modelFile,
                                  int dataFile);

}  // namespace hearth::cache
