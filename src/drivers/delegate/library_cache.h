// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/table/table_store.h"
#include "drivers/delegate/vendor_library.h"
#include "hal/driver_manifest.h"

namespace hearth::drivers::delegate {

class LibraryCache;

using CacheOption = hal::DriverManifest::Delegate::Cache;

// The folder that one delegate has for its cache. It has the lock of its folder, which is removed
// with it, so it must outlive the delegate. For one thread at a time.
class WorkingCache {
 public:
  ~WorkingCache();
  WorkingCache(const WorkingCache&) = delete;
  WorkingCache& operator=(const WorkingCache&) = delete;

  // The options with those that name the cache, in the order of their names.
  DelegateOptions addTo(DelegateOptions options) const;
  const base::Sha256Digest& key() const { return key_.bytes; }
  // What an earlier start has left for the delegate; 0 if it has to compile.
  uint64_t restoredBytes() const { return restored_.bytes; }
  // To be called when the delegate has prepared its model. What it has left is kept for later
  // starts. Returns whether it was there already.
  Result<bool> keep();
  // What was restored does not serve: later starts compile.
  void discard() const;

 private:
  friend class LibraryCache;
  struct Content {
    uint64_t bytes = 0;
    base::Sha256Digest digest{};
  };
  WorkingCache(const LibraryCache& owner, const base::Sha256Digest& key)
      : owner_(owner), key_{key} {}
  Status make();
  std::string files() const { return folder_ + "/files"; }
  void restore();

  const LibraryCache& owner_;
  const cache::TableKey key_;
  std::string folder_;
  base::Descriptor lock_;
  Content restored_;
};

// The cache that a vendor's library keeps by itself, redirected into the weight store. Each
// delegate gets a copy of what an earlier one has left for the same model, after every byte was
// checked, in a folder of its own: libraries read such files without a check, and write them in
// place. A copy with which a process ended before the model was ready is not used again.
// Thread-safe.
class LibraryCache {
 public:
  // `folder` is that of the weight store, in which this makes the folder `delegates`.
  LibraryCache(CacheOption option, std::string folder,
               std::shared_ptr<const cache::TableStore> store)
      : option_(std::move(option)),
        folder_(std::move(folder) + "/delegates"),
        store_(std::move(store)) {}

  // A folder for a delegate, with what was kept under the key: a digest of all that the delegate's
  // compilation depends on. Also removes folders of processes that have ended. kIo.
  Result<std::unique_ptr<WorkingCache>> take(const base::Sha256Digest& key) const;

 private:
  friend class WorkingCache;
  void removeAbandoned() const;

  const CacheOption option_;
  const std::string folder_;
  const std::shared_ptr<const cache::TableStore> store_;
};

}  // namespace hearth::drivers::delegate
