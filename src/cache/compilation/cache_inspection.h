// SPDX-License-Identifier: Apache-2.0
// What is known of a client's cache files, for people. Changes nothing and interprets no byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/sha256.h"
#include "cache/compilation/mapping_manager.h"

namespace hearth::cache {

enum class CacheFinding {
  kVerified,    // what a driver wrote under this key
  kEmpty,       // nothing was saved into them
  kNoMap,       // the mapping manager's file is not there, or cannot be used
  kUnknown,     // nothing is known under this key
  kOtherKey,    // they were written under another key
  kWrongSize,   // another size than what is known under this key
  kWrongBytes,  // the same size, and other bytes
  kUnreadable,
};

// A word for reports, for example "wrong-size".
const char* cacheFindingName(CacheFinding finding);

struct CacheInspection {
  CacheFinding finding = CacheFinding::kUnreadable;
  std::string reason;  // a sentence; empty for kVerified
  // Who wrote them; with kVerified and kOtherKey.
  std::optional<KnownContent> known;
};

// Compares one model cache and one data cache with the map. `preferredBuild`: of several builds
// that wrote the same, the one to name.
CacheInspection inspectCacheFiles(MappingManager& map, const base::Sha256Digest& token,
                                  const base::Sha256Digest& preferredBuild, int modelFile,
                                  int dataFile);

}  // namespace hearth::cache
