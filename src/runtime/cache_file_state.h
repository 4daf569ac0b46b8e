// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hal/device.h"
#include "runtime/cache_explanation.h"
#include "runtime/compilation_cache.h"

namespace hearth::runtime {

// The 64 letters of a key.
std::string cacheKeyLetters(const hal::CacheToken& key);

struct CacheFileName {
  hal::CacheToken key{};
  CacheFileKind kind = CacheFileKind::kModel;
  uint32_t index = 0;
};
// Parses a file name without its folder; nullopt when it is not the name of a cache file.
std::optional<CacheFileName> parseCacheFileName(std::string_view name);

// The file's present state. Anything but a regular file, a link included, counts as missing.
CacheFileState stateOfCacheFile(const std::string& folder, const hal::CacheToken& key,
                                CacheFileKind kind, uint32_t index);

}  // namespace hearth::runtime
