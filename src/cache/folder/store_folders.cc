// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/store_folders.h"

#include "base/env.h"
#include "base/log.h"

namespace hearth::cache {

StoreFolders::StoreFolders(const StoreOptions& options)
    : options_(options), boot_(options.boot.value_or(currentBootId())) {}

StoreResult<std::unique_ptr<StoreFolders>> StoreFolders::open(const StoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The weight store is switched off.");
  std::unique_ptr<StoreFolders> folders(new StoreFolders(options));
  for (const std::string& path : options.systemStores) {
    auto system = StoreFolder::open(path, StoreFolder::Access::kRead);
    if (system)
      folders->systems_.push_back(std::move(*system));
    else if (system.error().reason != StoreReason::kGone)
      base::logWarn("The system store {} is not used. {}", path, system.error().message);
  }
  folders->openOwn();
  if (folders->own_ == nullptr && folders->systems_.empty())
    return std::unexpected(folders->ownFailure_);
  return folders;
}

void StoreFolders::openOwn() {
  own_ = nullptr;
  ownFailure_ = {};
  if (options_.path.empty() && base::isSecureProcess()) {
    ownFailure_ = {StoreReason::kSetUid,
                   "A process with rights that its user lacks (set-uid) has no store but one that "
                   "its compile options name."};
    return;
  }
  if (options_.path.empty()) {
    ownFailure_ = {StoreReason::kNoHome, "No folder is named for a store of the user's own."};
    return;
  }
  if (options_.mode != StoreMode::kReadOnly) {
    auto opened = StoreFolder::open(options_.path, StoreFolder::Access::kWrite);
    if (opened) {
      own_ = std::move(*opened);
      return;
    }
    ownFailure_ = std::move(opened.error());
    if (ownFailure_.reason != StoreReason::kReadOnly && ownFailure_.reason != StoreReason::kNoSpace)
      return;
  } else {
    ownFailure_ = {StoreReason::kReadOnly, "The store's mode is read-only."};
  }
  auto opened = StoreFolder::open(options_.path, StoreFolder::Access::kRead);
  if (opened)
    own_ = std::move(*opened);
  else if (options_.mode == StoreMode::kReadOnly)
    ownFailure_ = std::move(opened.error());
}

std::vector<FolderRef> StoreFolders::searchOrder() const {
  std::vector<FolderRef> order = systems_;
  const std::lock_guard lock(mutex_);
  if (own_ != nullptr) order.push_back(own_);
  return order;
}

FolderRef StoreFolders::own() const {
  const std::lock_guard lock(mutex_);
  return own_;
}

StoreResult<FolderRef> StoreFolders::writable() const {
  const std::lock_guard lock(mutex_);
  if (own_ == nullptr || !own_->isWritable()) return std::unexpected(ownFailure_);
  return own_;
}

bool StoreFolders::reopenIfGone() {
  const std::lock_guard lock(mutex_);
  if (own_ == nullptr || !own_->isGone()) return false;
  base::logInfo("The store {} has been deleted and is made anew.", options_.path);
  openOwn();
  return own_ != nullptr;
}

}  // namespace hearth::cache
