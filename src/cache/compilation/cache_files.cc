// SPDX-License-Identifier: Apache-2.0
#include "cache/compilation/cache_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

namespace sys = base::sys;

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kStep = std::chrono::milliseconds(5);

std::atomic<uint64_t> trustedBytes = 0;

uint64_t sizeOf(CachePieces pieces) {
  uint64_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  return size;
}

// One digest for both files, so that the files of two contents cannot be mixed.
class ContentHash {
 public:
  ContentHash(uint64_t modelBytes, uint64_t dataBytes) {
    hash_.update("cache files", 11);
    hash_.update(&modelBytes, sizeof modelBytes);
    hash_.update(&dataBytes, sizeof dataBytes);
  }
  void add(std::span<const uint8_t> bytes) { hash_.update(bytes); }
  base::Sha256Digest finish() { return hash_.finish(); }

 private:
  base::Sha256 hash_;
};

Result<uint64_t> sizeOf(int file) {
  struct stat status;
  if (::fstat(file, &status) != 0)
    return std::unexpected(base::errnoError(errno, "Reading the size of a cache file"));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kIo, "A cache file is no regular file.");
  return static_cast<uint64_t>(status.st_size);
}

Result<memory::Mapping> copyOf(int file, uint64_t size) {
  HEARTH_ASSIGN(memory::Mapping copy, memory::Mapping::anonymous(std::max<uint64_t>(size, 1)));
  // Populates all pages at once, where the system can: page faults amid the copying would take
  // longer.
  ::madvise(copy.data(), copy.size(), MADV_POPULATE_WRITE);
  uint64_t done = 0;
  while (done < size) {
    const ssize_t count = retried([&] {
      return sys::pread(file, copy.data() + done, size - done, static_cast<off_t>(done));
    });
    if (count < 0) return std::unexpected(base::errnoError(errno, "Reading a cache file"));
    if (count == 0)
      return fail(ErrorCode::kNotFound, "A cache file ends after {} bytes of {}.", done, size);
    done += static_cast<uint64_t>(count);
  }
  return copy;
}

bool setLock(int file, int type) {
  struct flock lock{};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

Status writeFile(int file, CachePieces pieces) {
  HEARTH_TRY(sizeOf(file));
  uint64_t offset = 0;
  for (const auto& piece : pieces) {
    if (auto written = writeAt(file, piece.data(), piece.size(), offset); !written)
      return fail(ErrorCode::kIo, "A cache file cannot be written: {}", written.error().message);
    offset += piece.size();
  }
  if (retried([&] { return sys::ftruncate(file, static_cast<off_t>(offset)); }) != 0)
    return std::unexpected(base::errnoError(errno, "Cutting a cache file"));
  return {};
}

}  // namespace

Result<CacheFileLock> CacheFileLock::take(int modelFile, std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!setLock(modelFile, F_WRLCK)) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return std::unexpected(base::errnoError(errno, "Locking a cache file"));
    if (std::chrono::steady_clock::now() >= end)
      return fail(ErrorCode::kIo, "Another process keeps a lock on the cache file.");
    std::this_thread::sleep_for(kStep);
  }
  return CacheFileLock(modelFile);
}

CacheFileLock::~CacheFileLock() {
  if (file_ >= 0) setLock(file_, F_UNLCK);
}

CachedContent contentOf(CachePieces model, CachePieces data) {
  CachedContent content{{}, sizeOf(model), sizeOf(data)};
  ContentHash hash(content.modelBytes, content.dataBytes);
  for (const auto& piece : model) hash.add(piece);
  for (const auto& piece : data) hash.add(piece);
  content.digest = hash.finish();
  return content;
}

Result<CacheBytes> readCacheFiles(int modelFile, int dataFile,
                                  std::span<const CachedContent> contents) {
  HEARTH_ASSIGN(const uint64_t modelBytes, sizeOf(modelFile));
  HEARTH_ASSIGN(const uint64_t dataBytes, sizeOf(dataFile));
  const auto hasSizes = [&](const CachedContent& content) {
    return content.modelBytes == modelBytes && content.dataBytes == dataBytes;
  };
  if (std::ranges::none_of(contents, hasSizes))
    return fail(ErrorCode::kNotFound, "The cache files have {} and {} bytes, as none of {} known.",
                modelBytes, dataBytes, contents.size());
  CacheBytes bytes;
  HEARTH_ASSIGN(bytes.model, copyOf(modelFile, modelBytes));
  HEARTH_ASSIGN(bytes.data, copyOf(dataFile, dataBytes));
  ContentHash hash(modelBytes, dataBytes);
  hash.add({bytes.model.data(), modelBytes});
  hash.add({bytes.data.data(), dataBytes});
  const base::Sha256Digest digest = hash.finish();
  for (const CachedContent& content : contents) {
    if (!hasSizes(content) || content.digest != digest) continue;
    trustedBytes += modelBytes + dataBytes;
    bytes.content = content;
    for (const memory::Mapping* copy : {&bytes.model, &bytes.data})
      ::mprotect(copy->data(), copy->size(), PROT_READ);
    return bytes;
  }
  return fail(ErrorCode::kNotFound, "The cache files are not what was written into them.");
}

Result<CacheBytes> readKnownFiles(MappingManager& map, const CacheOwner& owner, int modelFile,
                                  int dataFile) {
  const auto read = [&](std::span<const CachedContent> contents) {
    Result<CacheBytes> bytes = readCacheFiles(modelFile, dataFile, contents);
    if (bytes) map.touch(owner, bytes->content);
    return bytes;
  };
  if (const auto latest = map.findLatest(owner))
    if (auto bytes = read({&*latest, 1})) return bytes;
  HEARTH_ASSIGN(const std::vector<CachedContent> contents, map.find(owner));
  if (contents.empty())
    return fail(ErrorCode::kNotFound, "Nothing is known to be cached under this token.");
  return read(contents);
}

Result<CachedContent> contentOfFiles(int modelFile, int dataFile) {
  CachedContent content;
  HEARTH_ASSIGN(content.modelBytes, sizeOf(modelFile));
  HEARTH_ASSIGN(content.dataBytes, sizeOf(dataFile));
  ContentHash hash(content.modelBytes, content.dataBytes);
  std::vector<uint8_t> buffer(size_t{1} << 20);
  for (const auto& [file, size] :
       {std::pair(modelFile, content.modelBytes), std::pair(dataFile, content.dataBytes)}) {
    uint64_t done = 0;
    while (done < size) {
      const uint64_t wanted = std::min<uint64_t>(buffer.size(), size - done);
      const ssize_t count = retried(
          [&] { return sys::pread(file, buffer.data(), wanted, static_cast<off_t>(done)); });
      if (count < 0) return std::unexpected(base::errnoError(errno, "Reading a cache file"));
      if (count == 0)
        return fail(ErrorCode::kIo, "A cache file ends after {} bytes of {}.", done, size);
      hash.add({buffer.data(), static_cast<size_t>(count)});
      done += static_cast<uint64_t>(count);
    }
  }
  content.digest = hash.finish();
  return content;
}

Status writeCacheFiles(int modelFile, CachePieces model, int dataFile, CachePieces data) {
  HEARTH_ASSIGN(const CacheFileLock lock, CacheFileLock::take(modelFile, kPatience));
  HEARTH_CRASH_POINT("cache_files.before_data");
  HEARTH_TRY(writeFile(dataFile, data));
  HEARTH_CRASH_POINT("cache_files.after_data");
  HEARTH_TRY(writeFile(modelFile, model));
  HEARTH_CRASH_POINT("cache_files.after_model");
  return {};
}

Status saveKnownFiles(MappingManager& map, const CacheOwner& owner, int modelFile,
                      CachePieces model, int dataFile, CachePieces data) {
  // The map learns the content before the files are written: if the process is killed in between,
  // the files do not match the map and are not used.
  HEARTH_TRY(map.remember(owner, contentOf(model, data)));
  return writeCacheFiles(modelFile, model, dataFile, data);
}

uint64_t trustedCacheBytes() {
  return trustedBytes;
}

}  // namespace hearth::cache
