// SPDX-License-Identifier: Apache-2.0
#include "llm/prefix_opening.h"

#include <filesystem>
#include <map>

#include "base/sha256.h"
#include "cache/store/store_options.h"

namespace hearth::llm {
namespace {

// As HEARTH_STORE_MODE has it; null for its default.
const char* modeName(hearth_cache_policy policy) {
  switch (policy) {
    case HEARTH_CACHE_OFF:
      return "off";
    case HEARTH_CACHE_READ_ONLY:
      return "read-only";
    case HEARTH_CACHE_READ_WRITE:
      return "read-write";
    case HEARTH_CACHE_STRICT:
      return "strict";
    case HEARTH_CACHE_DEFAULT:
      break;
  }
  return nullptr;
}

}  // namespace

cache::StoreResult<std::shared_ptr<cache::PrefixStore>> openPrefixStore(
    const CompileOptions& options) {
  std::map<std::string, std::string> texts;
  if (!options.store.empty()) texts["store"] = options.store;
  if (const char* const mode = modeName(options.cache)) texts["store_mode"] = mode;
  if (!options.weightCache.empty()) texts["bundle"] = options.weightCache;
  HEARTH_ASSIGN(const cache::StoreOptions store, cache::StoreOptions::fromTexts(texts));
  HEARTH_ASSIGN(const cache::PrefixStoreOptions prefixes, cache::PrefixStoreOptions::of(store));
  return cache::PrefixStore::open(prefixes);
}

Result<std::shared_ptr<const PrefixCache>> openPrefixes(const CompileOptions& options,
                                                        const ModelIdentity& identity,
                                                        const std::string& path) {
  const auto store = openPrefixStore(options);
  if (!store) return fail(ErrorCode::kIo, "{}", store.error().message);
  HEARTH_ASSIGN(const base::Sha256Digest digest, identity.digest(**store));
  return std::make_shared<const PrefixCache>(*store, digest,
                                             std::filesystem::path(path).filename());
}

}  // namespace hearth::llm
