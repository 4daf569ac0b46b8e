// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/object_file.h"

namespace hearth::cache {

// Which file it is and when it was last changed, as far as the system tells.
struct FileIdentity {
  FileGeneration generation;
  int64_t born = 0;  // nanoseconds since 1970, 0 = unknown
  bool operator==(const FileIdentity&) const = default;

  // Error: kIo.
  static Result<FileIdentity> of(int fd);
};

// Whether the system notices every change of the file's bytes that is made while nobody uses it:
// not so for memory file systems (writes through a mapping leave no trace) and files without name.
bool isIdentityTelling(int fd);

// One number for a range of a file as it is now.
base::Sha256Digest contentKey(const FileIdentity& file, uint64_t offset, uint64_t size);

// Whether the file was last changed long enough before its first byte was read (nanoseconds since
// 1970): git's rule, because a file system's clock is coarse, so that a change right after reading
// may leave the same time stamp.
bool isReadWellAfterChange(const FileIdentity& file, int64_t readAt);

// Somebody who remembers digests of files' content. Thread-safe.
class ContentMemory {
 public:
  virtual ~ContentMemory() = default;
  // The digest of a range of the file, if it was remembered while the file was the same, and
  // isReadWellAfterChange.
  virtual std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                                    uint64_t size) = 0;
  virtual void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                               const base::Sha256Digest& digest, int64_t readAt) = 0;
};

// The digest from `memory` (may be null), without reading the range.
std::optional<base::Sha256Digest> recalledHash(int fd, uint64_t offset, uint64_t size,
                                               ContentMemory* memory);

// What hashContent gives, from `memory` (may be null) where it can be had there; else the bytes are
// read, added to `hashed`, and the digest is remembered. Errors as hashContent.
Result<base::Sha256Digest> rememberedHash(int fd, uint64_t offset, uint64_t size, unsigned threads,
                                          ContentMemory* memory, std::atomic<uint64_t>& hashed);

}  // namespace hearth::cache
