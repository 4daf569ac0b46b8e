// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/latest_entries.h"

#include <fcntl.h>

#include <cstring>
#include <type_traits>

#include "base/descriptor.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

constexpr char kLatestFile[] = "identity.latest";
// Keys that share a place overwrite each other. Unused places take no room on the disk.
constexpr uint64_t kPlaces = 1024;
constexpr uint64_t kPlaceBytes = 128;

struct Record {
  base::Sha256Digest key;
  base::Sha256Digest digest;
  int64_t when;
  base::Sha256Digest checksum;
};
static_assert(std::has_unique_object_representations_v<Record> &&
              std::is_trivially_copyable_v<Record> && sizeof(Record) <= kPlaceBytes);

uint64_t placeOf(const base::Sha256Digest& key) {
  uint64_t number;
  std::memcpy(&number, key.data(), sizeof number);
  return number % kPlaces * kPlaceBytes;
}

}  // namespace

base::Sha256Digest checksumOf(const base::Sha256Digest& key, const IdentityEntry& entry) {
  base::Sha256 hash;
  hash.update("entry", 6);
  hash.update(key);
  hash.update(entry.digest);
  hash.update(&entry.when, sizeof entry.when);
  return hash.finish();
}

std::optional<IdentityEntry> findLatestEntry(int folder, const base::Sha256Digest& key) {
  const base::Descriptor file = openTrusted(folder, kLatestFile, O_RDONLY);
  Record record;
  if (!file.valid() || !readAt(file.get(), &record, sizeof record, placeOf(key)) ||
      record.key != key)
    return std::nullopt;
  const IdentityEntry entry{record.digest, record.when};
  if (record.checksum != checksumOf(key, entry)) return std::nullopt;
  return entry;
}

void keepLatestEntry(int folder, const base::Sha256Digest& key, const IdentityEntry& entry) {
  const base::Descriptor file = openTrusted(folder, kLatestFile, O_WRONLY | O_CREAT);
  if (!file.valid()) return;
  const Record record{key, entry.digest, entry.when, checksumOf(key, entry)};
  (void)writeAt(file.get(), &record, sizeof record, placeOf(key));
}

void forgetLatestEntries(int folder) {
  (void)removeFile(folder, kLatestFile);
}

}  // namespace hearth::cache
