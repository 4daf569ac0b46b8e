// SPDX-License-Identifier: Apache-2.0
#include "cache/content_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <type_traits>

#include "cache/content_hash.h"

namespace hearth::cache {
namespace {

// How much earlier than the reading the last change must be: file systems with stamps of two
// seconds exist.
constexpr uint64_t kRacyNanoseconds = 2'000'000'000;

int64_t now() {
  timespec time;
  ::clock_gettime(CLOCK_REALTIME, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

template <typename T>
void add(base::Sha256& hash, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  hash.update(&value, sizeof value);
}

void add(base::Sha256& hash, const FileGeneration& file) {
  for (const uint64_t value : {file.device, file.inode, file.size}) add(hash, value);
  for (const int64_t value : {file.modified, file.changed}) add(hash, value);
}

}  // namespace

Result<FileIdentity> FileIdentity::of(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return std::unexpected(base::errnoError(errno, "Reading the identity of a file"));
  FileIdentity identity{.generation = FileGeneration::of(status)};
  struct statx extended;
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &extended) == 0 &&
      (extended.stx_mask & STATX_BTIME) != 0)
    identity.born = extended.stx_btime.tv_sec * 1'000'000'000 + extended.stx_btime.tv_nsec;
  return identity;
}

bool isIdentityTelling(int fd) {
  struct stat status;
  struct statfs system;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink == 0 ||
      ::fstatfs(fd, &system) != 0)
    return false;
  const auto type = static_cast<unsigned long>(system.f_type);
  return type != TMPFS_MAGIC && type != RAMFS_MAGIC && type != HUGETLBFS_MAGIC;
}

base::Sha256Digest contentKey(const FileIdentity& file, uint64_t offset, uint64_t size) {
  base::Sha256 hash;
  hash.update("content", 8);
  add(hash, file.generation);
  add(hash, file.born);
  add(hash, offset);
  add(hash, size);
  return hash.finish();
}

bool isReadWellAfterChange(const FileIdentity& file, int64_t readAt) {
  const int64_t lastChange = std::max(file.generation.modified, file.generation.changed);
  // Both come from files, so their difference may not fit into a signed number.
  return readAt > lastChange &&
         static_cast<uint64_t>(readAt) - static_cast<uint64_t>(lastChange) >= kRacyNanoseconds;
}

std::optional<base::Sha256Digest> recalledHash(int fd, uint64_t offset, uint64_t size,
                                               ContentMemory* memory) {
  if (memory == nullptr || !isIdentityTelling(fd)) return std::nullopt;
  const auto file = FileIdentity::of(fd);
  if (!file || offset > file->generation.size || size > file->generation.size - offset)
    return std::nullopt;
  return memory->content(*file, offset, size);
}

Result<base::Sha256Digest> rememberedHash(int fd, uint64_t offset, uint64_t size, unsigned threads,
                                          ContentMemory* memory, std::atomic<uint64_t>& hashed) {
  if (const auto digest = recalledHash(fd, offset, size, memory)) return *digest;
  const bool isTelling = memory != nullptr && isIdentityTelling(fd);
  HEARTH_ASSIGN(const FileIdentity before, FileIdentity::of(fd));
  const int64_t start = now();
  HEARTH_ASSIGN(const base::Sha256Digest digest, hashContent(fd, offset, size, threads));
  hashed.fetch_add(size, std::memory_order_relaxed);
  HEARTH_ASSIGN(const FileIdentity after, FileIdentity::of(fd));
  if (isTelling && before == after) memory->rememberContent(before, offset, size, digest, start);
  return digest;
}

}  // namespace hearth::cache
