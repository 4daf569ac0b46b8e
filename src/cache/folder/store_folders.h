// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/mutex.h"
#include "cache/object/boot_id.h"
#include "cache/object/store_folder.h"
#include "cache/store/store_options.h"

namespace hearth::cache {

using FolderRef = std::shared_ptr<const StoreFolder>;

// All folders that one store searches, the user's own and the system's. Thread-safe.
class StoreFolders {
 public:
  // Opens the folders that can be opened. Error: why the user's own store is unusable, when no
  // folder is usable.
  static StoreResult<std::unique_ptr<StoreFolders>> open(const StoreOptions& options);

  const StoreOptions& options() const { return options_; }
  bool isStrict() const { return options_.mode == StoreMode::kStrict; }
  const BootId& boot() const { return boot_; }

  // System stores first, then the user's own.
  std::vector<FolderRef> searchOrder() const;
  // The user's own store; null when it cannot be read.
  FolderRef own() const;
  // The same for writing, or the reason why that is impossible.
  StoreResult<FolderRef> writable() const;

  // If the user's own store was deleted, opens it again, creating it where that is allowed. True
  // when there is another folder now.
  bool reopenIfGone();

 private:
  explicit StoreFolders(const StoreOptions& options);
  void openOwn();

  const StoreOptions options_;
  const BootId boot_;
  std::vector<FolderRef> systems_;
  mutable base::Mutex mutex_;
  FolderRef own_;
  StoreFailure ownFailure_;  // why own_ is missing or read-only
};

}  // namespace hearth::cache
