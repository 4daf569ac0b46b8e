// SPDX-License-Identifier: Apache-2.0
#include "cache/blob/blob_table.h"

#include <algorithm>
#include <random>
#include <utility>

namespace hearth::cache {

const Blob* BlobTable::find(std::string_view key) const {
  const auto found = blobs_.find(key);
  return found == blobs_.end() ? nullptr : &found->second;
}

bool BlobTable::isAllowed(uint64_t keyBytes, uint64_t valueBytes) const {
  return keyBytes != 0 && valueBytes != 0 && keyBytes <= UINT32_MAX && valueBytes <= UINT32_MAX &&
         keyBytes <= limits_.maxKeyBytes && valueBytes <= limits_.maxValueBytes &&
         keyBytes <= limits_.maxBytes && valueBytes <= limits_.maxBytes - keyBytes;
}

bool BlobTable::set(std::string_view key, std::span<const uint8_t> value, int64_t used) {
  if (!isAllowed(key.size(), value.size())) return false;
  const uint64_t size = key.size() + value.size();
  const Blob* const old = find(key);
  const uint64_t oldSize = old == nullptr ? 0 : key.size() + old->value.size();
  const uint64_t room = limits_.maxBytes - size;
  if (bytes_ - oldSize > room) {
    uint64_t target = limits_.maxBytes / 2;
    if (policy_.room == BlobRoom::kFit) target = room;
    if (policy_.room == BlobRoom::kFitAndHalve) target = std::min(target, room);
    evictTo(target, key);
    if (bytes_ - oldSize > room) return false;
  }
  return insert(std::string(key), {{value.begin(), value.end()}, used});
}

bool BlobTable::insert(std::string key, Blob blob) {
  if (!isAllowed(key.size(), blob.value.size())) return false;
  erase(key);
  bytes_ += key.size() + blob.value.size();
  blobs_.insert_or_assign(std::move(key), std::move(blob));
  return true;
}

void BlobTable::touch(std::string_view key, int64_t used) {
  const auto found = blobs_.find(key);
  if (found != blobs_.end()) found->second.used = std::max(found->second.used, used);
}

bool BlobTable::erase(std::string_view key) {
  const auto found = blobs_.find(key);
  if (found == blobs_.end()) return false;
  bytes_ -= key.size() + found->second.value.size();
  blobs_.erase(found);
  return true;
}

void BlobTable::fit() {
  if (bytes_ <= limits_.maxBytes) return;
  evictTo(policy_.room == BlobRoom::kFit ? limits_.maxBytes : limits_.maxBytes / 2, {});
}

void BlobTable::evictTo(uint64_t bytes, std::string_view spared) {
  const Blob* const kept = find(spared);
  const uint64_t keptBytes = kept == nullptr ? 0 : spared.size() + kept->value.size();
  std::vector<BlobMap::iterator> entries;
  for (auto entry = blobs_.begin(); entry != blobs_.end(); ++entry)
    if (entry->first != spared) entries.push_back(entry);
  if (policy_.eviction == BlobEviction::kLeastRecentlyUsed) {
    std::ranges::stable_sort(entries, {}, [](const auto& entry) { return entry->second.used; });
  } else {
    // Nobody may rely on which entries are evicted, so two runs differ.
    std::minstd_rand random(std::random_device{}());
    std::ranges::shuffle(entries, random);
  }
  for (const auto& entry : entries) {
    if (bytes_ - keptBytes <= bytes) return;
    bytes_ -= entry->first.size() + entry->second.value.size();
    blobs_.erase(entry);
  }
}

}  // namespace hearth::cache
