// SPDX-License-Identifier: Apache-2.0
// A client's files for compilation caching. Anybody may write, cut or lock them at any time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/compilation/mapping_manager.h"
#include "memory/mapping.h"

namespace hearth::cache {

// The bytes of one file that is to be written, in pieces that follow each other.
using CachePieces = std::span<const std::span<const uint8_t>>;

// The sizes and the digest of both caches, as MappingManager keeps them.
CachedContent contentOf(CachePieces model, CachePieces data);

// Private copies of a model cache and a data cache. Only the copies are checked and used, so what
// happens to the files afterwards does not matter.
struct CacheBytes {
  CachedContent content;
  memory::Mapping model;  // at least content.modelBytes; both mappings are read-only
  memory::Mapping data;
};

// Copies the files if they have one of these contents. Compares the sizes first, so that no more is
// read than was once written. Errors: kNotFound, which says what differs; kIo when a file cannot be
// read.
Result<CacheBytes> readCacheFiles(int modelFile, int dataFile,
                                  std::span<const CachedContent> contents);

// The same for the files of this owner, if the map knows what they contain.
Result<CacheBytes> readKnownFiles(MappingManager& map, const CacheOwner& owner, int modelFile,
                                  int dataFile);

// The digest and sizes of the files as they are now. Keeps and interprets nothing. Error: kIo.
Result<CachedContent> contentOfFiles(int modelFile, int dataFile);

// Holds an exclusive lock on an open model cache. The lock belongs to the open file description:
// taking it twice through the same description is no conflict, and the first unlock releases it.
class CacheFileLock {
 public:
  // Tries for `patience`. Errors: kIo.
  static Result<CacheFileLock> take(int modelFile, std::chrono::nanoseconds patience);
  CacheFileLock(CacheFileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  CacheFileLock& operator=(CacheFileLock&&) = delete;
  ~CacheFileLock();

 private:
  explicit CacheFileLock(int file) : file_(file) {}
  int file_;
};

// Writes both files, under a CacheFileLock for which it waits one second at most. After a failure
// the files match no content that the map knows. Error: kIo.
Status writeCacheFiles(int modelFile, CachePieces model, int dataFile, CachePieces data);

// Lets the map know what the files are to contain, and writes them. Errors: those of
// MappingManager::remember() and writeCacheFiles().
Status saveKnownFiles(MappingManager& map, const CacheOwner& owner, int modelFile,
                      CachePieces model, int dataFile, CachePieces data);

// How many bytes of client files were accepted since the process started.
uint64_t trustedCacheBytes();

}  // namespace hearth::cache
