// SPDX-License-Identifier: Apache-2.0
#include "cache/store_options.h"

#include <string_view>

#include "base/env.h"

namespace hearth::cache {
namespace {

std::string standardPath() {
  if (const std::string cache = base::envFolder(base::Env::kCacheHome); !cache.empty())
    return cache + "/hearth/store";
  if (const std::string home = base::envFolder(base::Env::kHome); !home.empty())
    return home + "/.cache/hearth/store";
  return "";
}

StoreMode modeOf(std::string_view word) {
  if (word == "off") return StoreMode::kOff;
  if (word == "read-only") return StoreMode::kReadOnly;
  if (word == "strict") return StoreMode::kStrict;
  return StoreMode::kReadWrite;
}

}  // namespace

StoreResult<StoreOptions> StoreOptions::fromEnvironment() {
  StoreOptions options;
  const Result<std::string> mode = base::envChoice(base::Env::kStoreMode);
  if (!mode) return storeFail(StoreReason::kBadRequest, "{}", mode.error().toString());
  options.mode = modeOf(*mode);
  const Result<uint64_t> size = base::envBytes(base::Env::kStoreSize);
  if (!size) return storeFail(StoreReason::kBadRequest, "{}", size.error().toString());
  options.maxBytes = *size;
  const std::string systems = base::envString(base::Env::kSystemStores);
  for (size_t begin = 0; begin < systems.size();) {
    const size_t end = std::min(systems.find(':', begin), systems.size());
    if (end > begin) options.systemStores.push_back(systems.substr(begin, end - begin));
    begin = end + 1;
  }
  options.path = base::envString(base::Env::kStore);
  if (options.path.empty()) options.path = standardPath();
  if (options.path.empty() && options.systemStores.empty())
    return storeFail(StoreReason::kNoHome,
                     "HEARTH_STORE, XDG_CACHE_HOME and HOME name no folder for the store.");
  return options;
}

}  // namespace hearth::cache
