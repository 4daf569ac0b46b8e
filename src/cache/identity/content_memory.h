// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/object/file_facts.h"
#include "cache/object/object_file.h"

namespace hearth::cache {

// Which file it is, when it was last changed, and how much that proves. Two equal identities with
// the same proof are of the same bytes, except for changes within the racy window.
struct FileIdentity {
  FileGeneration generation;
  int64_t born = 0;  // nanoseconds since 1970, 0 = unknown
  ChangeProof proof = ChangeProof::kNone;
  base::Sha256Digest scope{};  // scopeOf()
  bool operator==(const FileIdentity&) const = default;

  // Error: kIo.
  static Result<FileIdentity> of(int fd);
};

// One number for a range of a file as it is now.
base::Sha256Digest contentKey(const FileIdentity& file, uint64_t offset, uint64_t size);

// Whether a digest of bytes that were read from `readAt` (nanoseconds since 1970) on may be taken
// for that of the same identity at any later time. For that the file was last changed long enough
// before: git's rule, because a file system's clock is coarse, so that a change right after reading
// may leave the same time stamp. Never where the clock says that it was changed later.
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

// A range of a file that is going to be read, and what the file was like before: whoever packs it
// and names its content later can tell whether both were of the same bytes.
class ContentSource {
 public:
  // As the file is now. `mayBeWritten`: the memory that it is can be written without a trace, by
  // whoever has it mapped. The descriptor stays the caller's, and open.
  static ContentSource of(int fd, uint64_t offset, uint64_t size, bool mayBeWritten = false);

  int fd() const { return fd_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }
  // Null where it tells nothing.
  const FileIdentity* file() const { return file_ ? &*file_ : nullptr; }
  // Nanoseconds since 1970.
  int64_t seenAt() const { return seenAt_; }

  // Whether isUnchanged() can be asked: else nothing but the bytes themselves tells of changes.
  bool tellsChanges() const;
  // Whether the system says that no byte has changed since. False where it cannot tell.
  bool isUnchanged() const;

 private:
  int fd_ = -1;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
  std::optional<FileIdentity> file_;
  int64_t seenAt_ = 0;
};

// The digest from `memory` (may be null), without reading the range.
std::optional<base::Sha256Digest> recalledHash(const ContentSource& source, ContentMemory* memory);

// What hashContent gives, from `memory` (may be null) where it can be had there; else the bytes are
// read, added to `hashed`, and the digest is remembered if they have not changed since the source
// was seen. Errors as hashContent.
Result<base::Sha256Digest> rememberedHash(const ContentSource& source, unsigned threads,
                                          ContentMemory* memory, std::atomic<uint64_t>& hashed);

}  // namespace hearth::cache
