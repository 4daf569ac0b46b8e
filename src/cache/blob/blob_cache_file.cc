// SPDX-License-Identifier: Apache-2.0
#include "cache/blob/blob_cache_file.h"

#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/sha256.h"

namespace hearth::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "The format is little endian.");

constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'B', 'L', 'B', '\n'};
constexpr uint32_t kVersion = 1;

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t count;
  uint64_t size;  // of the entries
  uint8_t reserved[8];
  uint8_t digest[32];  // of the head up to here, and the entries
};
static_assert(sizeof(Head) == 64);

struct EntryHead {
  uint32_t keySize;
  uint32_t valueSize;
  int64_t used;
};
static_assert(sizeof(EntryHead) == 16);

base::Sha256Digest digestOf(const Head& head, std::span<const uint8_t> entries) {
  base::Sha256 hash;
  hash.update(&head, offsetof(Head, digest));
  hash.update(entries);
  return hash.finish();
}

void append(std::vector<uint8_t>* bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const uint8_t*>(data);
  bytes->insert(bytes->end(), begin, begin + size);
}

}  // namespace

std::vector<uint8_t> makeBlobCacheFile(const BlobMap& blobs) {
  std::vector<uint8_t> file(sizeof(Head));
  for (const auto& [key, blob] : blobs) {
    const EntryHead entry{static_cast<uint32_t>(key.size()),
                          static_cast<uint32_t>(blob.value.size()), blob.used};
    append(&file, &entry, sizeof entry);
    append(&file, key.data(), key.size());
    append(&file, blob.value.data(), blob.value.size());
  }
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.count = static_cast<uint32_t>(blobs.size());
  head.size = file.size() - sizeof head;
  const base::Sha256Digest digest = digestOf(head, std::span(file).subspan(sizeof head));
  std::memcpy(head.digest, digest.data(), sizeof head.digest);
  std::memcpy(file.data(), &head, sizeof head);
  return file;
}

StoreResult<BlobMap> parseBlobCacheFile(std::span<const uint8_t> file) {
  Head head;
  if (file.size() < sizeof head)
    return storeFail(StoreReason::kCorrupt, "A blob cache has {} bytes, fewer than its head.",
                     file.size());
  std::memcpy(&head, file.data(), sizeof head);
  std::span<const uint8_t> rest = file.subspan(sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion)
    return storeFail(StoreReason::kCorrupt, "A blob cache has no head of version {}.", kVersion);
  if (head.size != rest.size())
    return storeFail(StoreReason::kCorrupt, "A blob cache has {} bytes of entries and claims {}.",
                     rest.size(), head.size);
  const base::Sha256Digest digest = digestOf(head, rest);
  if (std::memcmp(digest.data(), head.digest, sizeof head.digest) != 0)
    return storeFail(StoreReason::kCorrupt, "A blob cache has changed.");
  BlobMap blobs;
  while (!rest.empty()) {
    EntryHead entry;
    if (rest.size() < sizeof entry)
      return storeFail(StoreReason::kCorrupt, "A blob cache ends inside an entry.");
    std::memcpy(&entry, rest.data(), sizeof entry);
    rest = rest.subspan(sizeof entry);
    if (entry.keySize == 0 || entry.valueSize == 0 ||
        uint64_t{entry.keySize} + entry.valueSize > rest.size())
      return storeFail(StoreReason::kCorrupt,
                       "A blob cache claims a key of {} and a value of {} bytes where {} are left.",
                       entry.keySize, entry.valueSize, rest.size());
    const auto value = rest.subspan(entry.keySize, entry.valueSize);
    std::string key(reinterpret_cast<const char*>(rest.data()), entry.keySize);
    // Ordered, so that equal entries are equal bytes.
    if (!blobs.empty() && key <= blobs.rbegin()->first)
      return storeFail(StoreReason::kCorrupt, "The keys of a blob cache are not in order.");
    blobs.emplace_hint(blobs.end(), std::move(key), Blob{{value.begin(), value.end()}, entry.used});
    rest = rest.subspan(size_t{entry.keySize} + entry.valueSize);
  }
  if (blobs.size() != head.count)
    return storeFail(StoreReason::kCorrupt, "A blob cache has {} entries and claims {}.",
                     blobs.size(), head.count);
  return blobs;
}

uint64_t maxBlobCacheFile(const BlobLimits& limits) {
  // The shortest entry has a key and a value of one byte each.
  return sizeof(Head) + limits.maxBytes + limits.maxBytes / 2 * sizeof(EntryHead);
}

StoreResult<BlobMap> readBlobCacheFile(int folder, const std::string& name,
                                       const BlobLimits& limits) {
  HEARTH_ASSIGN(const ObjectFile object, openObject(folder, name));
  if (object.generation.size > maxBlobCacheFile(limits))
    return storeFail(StoreReason::kCorrupt, "The blob cache {} has {} bytes, more than {}.", name,
                     object.generation.size, maxBlobCacheFile(limits));
  std::vector<uint8_t> file(static_cast<size_t>(object.generation.size));
  HEARTH_TRY(readAt(object.descriptor.get(), file.data(), file.size(), 0));
  return parseBlobCacheFile(file);
}

StoreResult<FileGeneration> writeBlobCacheFile(const StoreFolder& folder, const std::string& name,
                                               std::span<const uint8_t> file) {
  if (!folder.isWritable())
    return storeFail(StoreReason::kReadOnly,
                     "The blob cache {} lies in a folder that is only read.", name);
  HEARTH_ASSIGN(TempObject object, TempObject::create(folder.temporary()));
  HEARTH_TRY(writeAt(object.fd(), file.data(), file.size(), 0));
  HEARTH_CRASH_POINT("blob_cache.after_write");
  if (retried([&] { return base::sys::fsync(object.fd()); }) != 0)
    return storeErrno(errno, base::formatText("Syncing the blob cache {}", name));
  HEARTH_CRASH_POINT("blob_cache.after_sync");
  HEARTH_TRY(object.placeAt(folder.root(), name));
  struct stat status;
  if (::fstat(object.fd(), &status) != 0)
    return storeErrno(errno, base::formatText("Reading the state of the blob cache {}", name));
  return FileGeneration::of(status);
}

}  // namespace hearth::cache
