// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/device_context.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "cache/identity/identity_table.h"
#include "cache/object/store_folder.h"
#include "drivers/delegate/call_limit.h"
#include "drivers/delegate/library_identity.h"

namespace hearth::drivers::delegate {
namespace {

// The digests of files that the weight store remembers, with the folder that they lie in.
class StoredDigests {
 public:
  explicit StoredDigests(std::shared_ptr<const cache::StoreFolder> folder)
      : folder_(std::move(folder)), table_(folder_->root(), folder_->path(), true) {}
  cache::ContentMemory& table() { return table_; }

 private:
  const std::shared_ptr<const cache::StoreFolder> folder_;
  cache::IdentityTable table_;
};

void add(base::Sha256* hash, std::string_view text) {
  const uint64_t size = text.size();
  hash->update(&size, sizeof size);
  hash->update(text.data(), text.size());
}

base::Sha256Digest identityOf(const DeviceSettings& settings, const VendorLibrary& library) {
  base::Sha256 hash;
  add(&hash, library.digest());
  hash.update(identityOfLoadedCode());
  const int32_t minor = settings.version.minor;
  hash.update(&minor, sizeof minor);
  for (const auto* const list : {&settings.options, &settings.variables})
    for (const auto& [name, value] : *list) {
      add(&hash, name);
      add(&hash, value);
    }
  return hash.finish();
}

}  // namespace

DeviceContext::DeviceContext(DeviceSettings settings, std::shared_ptr<VendorLibrary> library)
    : settings_(std::move(settings)),
      library_(std::move(library)),
      identity_(identityOf(settings_, *library_)) {}

Result<std::shared_ptr<DeviceContext>> DeviceContext::create(DeviceSettings settings) {
  std::shared_ptr<VendorLibrary> library;
  {
    const CallLimit limit(settings.library, settings.prepareLimit);
    HEARTH_ASSIGN(library, VendorLibrary::load(settings.library));
  }
  std::shared_ptr<DeviceContext> made(new DeviceContext(std::move(settings), std::move(library)));
  made->openStore();
  return made;
}

void DeviceContext::openStore() {
  std::shared_ptr<const cache::TableStore> tables;
  std::shared_ptr<cache::ContentMemory> memory;
  if (settings_.store) {
    auto opened = [&]() -> cache::StoreStatus {
      HEARTH_ASSIGN(const auto options,
                    cache::TableStoreOptions::of(*settings_.store, cache::TableKind::kDelegate));
      if (options.mode == cache::StoreMode::kReadOnly)
        return cache::storeFail(cache::StoreReason::kReadOnly, "The store's mode is read-only.");
      HEARTH_ASSIGN(tables, cache::TableStore::open(options));
      HEARTH_ASSIGN(auto folder,
                    cache::StoreFolder::open(options.path, cache::StoreFolder::Access::kWrite));
      const auto stored = std::make_shared<StoredDigests>(std::move(folder));
      memory = {stored, &stored->table()};
      return {};
    }();
    if (!opened)
      base::logInfo("The device {} keeps nothing from start to start. {}", settings_.name,
                    opened.error().message);
    if (tables != nullptr && settings_.cache)
      cache_.emplace(*settings_.cache, settings_.store->path, tables);
  }
  digests_.emplace(std::move(memory));
  claims_.emplace(std::move(tables));
}

Result<base::Sha256Digest> DeviceContext::keyOf(std::string_view kind,
                                                const graph::Model& model) const {
  HEARTH_ASSIGN(const base::Sha256Digest digest, digests_->of(model));
  base::Sha256 hash;
  add(&hash, kind);
  hash.update(identity_);
  hash.update(digest);
  return hash.finish();
}

}  // namespace hearth::drivers::delegate
