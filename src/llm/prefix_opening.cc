// SPDX-License-Identifier: Apache-2.0
#include "llm/prefix_opening.h"

#include <filesystem>

#include "base/sha256.h"
#include "cache/store/store_options.h"
#include "llm/weight_store_options.h"

namespace hearth::llm {
cache::StoreResult<std::shared_ptr<cache::PrefixStore>> openPrefixStore(
    const CompileOptions& options) {
  HEARTH_ASSIGN(const cache::StoreOptions store, weightStoreOptions(options));
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
