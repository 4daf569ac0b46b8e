// SPDX-License-Identifier: Apache-2.0
#include "llm/prefix_opening.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/sha256.h"
#include "cache/store/store_options.h"
#include "llm/thrown.h"
#include "llm/weight_store_options.h"

namespace hearth::llm {
cache::StoreResult<std::shared_ptr<cache::PrefixStore>> openPrefixStore(
    const CompileOptions& options) {
  HEARTH_ASSIGN(const cache::StoreOptions store, weightStoreOptions(options));
  HEARTH_ASSIGN(const cache::PrefixStoreOptions prefixes, cache::PrefixStoreOptions::of(store));
  return cache::PrefixStore::open(prefixes);
}

bool isForCpuAlone(const CompileOptions& options) {
  constexpr const char* kCpu = "hearth-cpu";
  // The last resort, which takes nothing that hearth-cpu takes.
  constexpr const char* kReference = "nnapi-reference";
  if (options.device == kCpu) return true;
  if (!options.device.empty()) return false;
  const auto all = returned([]() -> Result<std::vector<Device>> { return devices(); });
  return all && std::ranges::contains(*all, kCpu, &Device::name) &&
         std::ranges::all_of(*all, [&](const Device& device) {
           return device.name == kCpu || device.name == kReference;
         });
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
