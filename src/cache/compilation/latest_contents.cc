// SPDX-License-Identifier: Apache-2.0
#include "cache/compilation/latest_contents.h"

#include <fcntl.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/descriptor.h"

namespace hearth::cache {
namespace {

constexpr char kLatestFile[] = "cache-map.latest";
constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'L', 'A', 'T', '\n'};
// Owners that share a place overwrite each other. Unused places take no room on the disk.
constexpr uint64_t kPlaces = 1024;
constexpr uint64_t kPlaceBytes = 256;

struct Record {
  char magic[8];
  FileGeneration database;
  base::Sha256Digest build;
  base::Sha256Digest token;
  base::Sha256Digest digest;
  uint64_t uid;
  uint64_t modelBytes;
  uint64_t dataBytes;
  int64_t used;
  base::Sha256Digest checksum;  // over all bytes before it
};
static_assert(std::has_unique_object_representations_v<Record> &&
              std::is_trivially_copyable_v<Record> && sizeof(Record) <= kPlaceBytes);

base::Sha256Digest checksumOf(const Record& record) {
  base::Sha256 hash;
  hash.update(&record, offsetof(Record, checksum));
  return hash.finish();
}

off_t placeOf(const CacheOwner& owner) {
  base::Sha256 hash;
  hash.update(owner.build);
  hash.update(&owner.uid, sizeof owner.uid);
  hash.update(owner.token);
  const base::Sha256Digest digest = hash.finish();
  uint64_t number;
  std::memcpy(&number, digest.data(), sizeof number);
  return static_cast<off_t>(number % kPlaces * kPlaceBytes);
}

}  // namespace

std::optional<KnownContent> findLatestContent(int folder, const FileGeneration& database,
                                              const CacheOwner& owner) {
  const base::Descriptor file = openTrusted(folder, kLatestFile, O_RDONLY);
  if (!file.valid()) return std::nullopt;
  Record record;
  if (!readAt(file.get(), &record, sizeof record, static_cast<uint64_t>(placeOf(owner))) ||
      std::memcmp(record.magic, kMagic, sizeof kMagic) != 0 || record.database != database ||
      record.build != owner.build || record.uid != owner.uid || record.token != owner.token ||
      record.checksum != checksumOf(record))
    return std::nullopt;
  return KnownContent{owner, {record.digest, record.modelBytes, record.dataBytes}, record.used};
}

void keepLatestContent(int folder, const FileGeneration& database, const KnownContent& known) {
  const base::Descriptor file = openTrusted(folder, kLatestFile, O_WRONLY | O_CREAT);
  if (!file.valid()) return;
  Record record{{},
                database,
                known.owner.build,
                known.owner.token,
                known.content.digest,
                known.owner.uid,
                known.content.modelBytes,
                known.content.dataBytes,
                known.used,
                {}};
  std::memcpy(record.magic, kMagic, sizeof kMagic);
  record.checksum = checksumOf(record);
  (void)writeAt(file.get(), &record, sizeof record, static_cast<uint64_t>(placeOf(known.owner)));
}

}  // namespace hearth::cache
