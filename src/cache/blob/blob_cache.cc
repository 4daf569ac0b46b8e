// SPDX-License-Identifier: Apache-2.0
#include "cache/blob/blob_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/sha256.h"
#include "base/wall_clock.h"

namespace hearth::cache {
namespace {

// How long to wait for the lock while no other process makes progress.
constexpr auto kPatience = std::chrono::seconds(10);

// Whether the cache starts empty and the file may be replaced. Not where one read failed for
// another reason: the file may be right.
bool isEmptyCache(StoreReason reason) {
  return reason == StoreReason::kAbsent || reason == StoreReason::kCorrupt ||
         reason == StoreReason::kForeign;
}

SegmentKey lockKey(const std::string& name) {
  base::Sha256 hash;
  hash.update("blob cache", 10);
  hash.update(name.data(), name.size());
  return {hash.finish()};
}

}  // namespace

BlobCache::BlobCache(std::shared_ptr<const StoreFolder> folder, std::string name,
                     const BlobLimits& limits, BlobPolicy policy)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      limits_(limits),
      policy_(policy),
      table_(limits, policy) {}

int64_t BlobCache::stamp() {
  // Increases even if the clock is coarse or set back, so that the order of uses stays right.
  return lastStamp_ = std::max(lastStamp_ + 1, base::wallClock());
}

void BlobCache::changed(std::string_view key) {
  const uint64_t number = ++changeCount_;
  if (const auto known = changes_.find(key); known != changes_.end())
    known->second = number;
  else
    changes_.emplace(key, number);
}

void BlobCache::merge(BlobMap saved) {
  BlobTable merged(limits_, policy_);
  const int64_t time = base::wallClock();
  for (auto& [key, blob] : saved) {
    if (changes_.contains(key)) continue;
    // A time in the future would keep the entry for ever.
    blob.used = std::min(blob.used, time);
    if (const Blob* const known = table_.find(key)) blob.used = std::max(blob.used, known->used);
    merged.insert(key, std::move(blob));
  }
  for (const auto& [key, number] : changes_)
    if (const Blob* const own = table_.find(key)) merged.insert(key, *own);
  merged.fit();
  table_ = std::move(merged);
}

void BlobCache::refresh() {
  if (folder_ == nullptr) return;
  struct stat status;
  std::optional<FileGeneration> there;
  if (::fstatat(folder_->root(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    there = FileGeneration::of(status);
  if (there == seen_) return;
  auto saved = readBlobCacheFile(folder_->root(), name_, limits_);
  if (!saved && !isEmptyCache(saved.error().reason)) return;
  merge(saved ? std::move(*saved) : BlobMap());
  seen_ = there;
}

std::optional<std::vector<uint8_t>> BlobCache::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  refresh();
  const Blob* const blob = table_.find(key);
  if (blob == nullptr) return std::nullopt;
  table_.touch(key, stamp());
  return blob->value;
}

size_t BlobCache::get(std::string_view key, std::span<uint8_t> buffer) {
  const std::lock_guard lock(mutex_);
  refresh();
  const Blob* const blob = table_.find(key);
  if (blob == nullptr) return 0;
  const size_t size = blob->value.size();
  if (size > buffer.size()) return size;
  std::memcpy(buffer.data(), blob->value.data(), size);
  table_.touch(key, stamp());
  return size;
}

void BlobCache::set(std::string_view key, std::span<const uint8_t> value) {
  const std::lock_guard lock(mutex_);
  refresh();
  const Blob* const known = table_.find(key);
  const bool isSame = known != nullptr && std::ranges::equal(known->value, value);
  if (isSame)
    table_.touch(key, stamp());
  else if (table_.set(key, value, stamp()))
    changed(key);
}

void BlobCache::remove(std::string_view key) {
  const std::lock_guard lock(mutex_);
  refresh();
  if (table_.erase(key)) changed(key);
}

StoreResult<BuildLock::Hold> BlobCache::lockFile() {
  std::shared_ptr<BuildLock> lock;
  {
    const std::lock_guard guard(mutex_);
    if (lock_ == nullptr) lock_ = BuildLock::open(*folder_);
    lock = lock_;
  }
  if (!folder_->isWritable())
    return storeFail(StoreReason::kReadOnly,
                     "The blob cache {} lies in a folder that is only read.", name_);
  if (lock == nullptr)
    return storeFail(StoreReason::kIoError, "There is no lock for the blob cache {}.", name_);
  BuildLock::Hold hold;
  const auto neverAppears = [] {
    return false;
  };
  if (lock->acquire(lockKey(name_), kPatience, neverAppears, hold) != BuildLock::Outcome::kHeld)
    return storeFail(StoreReason::kBusy, "Another process keeps the lock of the blob cache {}.",
                     name_);
  lock->noteProgress();
  return hold;
}

StoreStatus BlobCache::save() {
  if (folder_ == nullptr) return {};
  const std::lock_guard saving(saveMutex_);
  {
    const std::lock_guard lock(mutex_);
    if (changes_.empty()) return {};
  }
  HEARTH_ASSIGN(const BuildLock::Hold hold, lockFile());
  auto saved = readBlobCacheFile(folder_->root(), name_, limits_);
  if (!saved && !isEmptyCache(saved.error().reason)) return std::unexpected(saved.error());
  std::vector<uint8_t> file;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    merge(saved ? std::move(*saved) : BlobMap());
    file = makeBlobCacheFile(table_.blobs());
    number = changeCount_;
  }
  HEARTH_ASSIGN(const FileGeneration written, writeBlobCacheFile(*folder_, name_, file));
  const std::lock_guard lock(mutex_);
  std::erase_if(changes_, [&](const auto& change) { return change.second <= number; });
  seen_ = written;
  return {};
}

StoreStatus BlobCache::removeAll() {
  const std::lock_guard saving(saveMutex_);
  if (folder_ != nullptr) {
    HEARTH_ASSIGN(const BuildLock::Hold hold, lockFile());
    HEARTH_TRY(clearPlace(folder_->root(), name_, folder_->temporary()));
  }
  const std::lock_guard lock(mutex_);
  table_ = BlobTable(limits_, policy_);
  changes_.clear();
  seen_.reset();
  return {};
}

StoreResult<uint64_t> BlobCache::verify() {
  if (folder_ == nullptr) return count();
  const auto read = [&] {
    return readBlobCacheFile(folder_->root(), name_, limits_);
  };
  auto saved = read();
  if (saved) return saved->size();
  if (saved.error().reason == StoreReason::kAbsent) return 0;
  if (isEmptyCache(saved.error().reason) && folder_->isWritable()) {
    // Read again under the lock: another process may have replaced the file.
    HEARTH_ASSIGN(const BuildLock::Hold hold, lockFile());
    if (const auto again = read(); again) return again->size();
    HEARTH_TRY(clearPlace(folder_->root(), name_, folder_->temporary()));
  }
  return std::unexpected(std::move(saved.error()));
}

uint64_t BlobCache::count() {
  const std::lock_guard lock(mutex_);
  refresh();
  return table_.blobs().size();
}

uint64_t BlobCache::bytes() {
  const std::lock_guard lock(mutex_);
  refresh();
  return table_.bytes();
}

void BlobCache::closeInChild() {
  if (lock_ != nullptr) lock_->abandonInChild();
}

}  // namespace hearth::cache
