// SPDX-License-Identifier: Apache-2.0
// A client's files for compilation caching, which anybody may write, cut or lock at any time.
#pragma once

#include <cstdint>
#include <span>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/compilation/mapping_manager.h"
#include "memory/mapping.h"

namespace hearth::cache {

// The bytes of one file before they are written, in pieces that follow each other.
using CachePieces = std::span<const std::span<const uint8_t>>;

// What MappingManager keeps of a model cache and a data cache.
CachedContent contentOf(CachePieces model, CachePieces data);

// Private copies of a model cache and a data cache, on which everything is checked and done: what
// happens to the files after copying does not matter.
struct CacheBytes {
  CachedContent content;
  memory::Mapping model;  // at least content.modelBytes, read-only, as are the others
  memory::Mapping data;
};

// Copies the files if they have one of these contents. Sizes are compared first, so that no more is
// read than was once written. kNotFound says what differs; kIo when a file cannot be read.
Result<CacheBytes> readCacheFiles(int modelFile, int dataFile,
                                  std::span<const CachedContent> contents);

// The digest and sizes of what is in the files now; nothing is kept or interpreted. kIo.
Result<CachedContent> contentOfFiles(int modelFile, int dataFile);

// Writes both files, under a lock on the model file that is waited for a second at most. The files
// are whole afterwards, or not those of any content. Errors: kIo.
Status writeCacheFiles(int modelFile, CachePieces model, int dataFile, CachePieces data);

// How many bytes of client files were let through to be interpreted, since the process started.
uint64_t trustedCacheBytes();

}  // namespace hearth::cache
