// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_tags.h"
#include "cache/object/file_facts.h"
#include "cache/object/object_file.h"

namespace hearth::cache {

// Identifies a file, with the times of its last change and what they prove. Two equal identities
// with the same proof have the same bytes, except for changes within the racy window.
struct FileIdentity {
  FileGeneration generation;
  int64_t born = 0;  // nanoseconds since 1970, 0 = unknown
  ChangeProof proof = ChangeProof::kNone;
  base::Sha256Digest scope{};  // scopeOf()
  bool operator==(const FileIdentity&) const = default;

  // Error: kIo.
  static Result<FileIdentity> of(int fd);
};

// A digest that stands for a range of the file as it is now.
base::Sha256Digest contentKey(const FileIdentity& file, uint64_t offset, uint64_t size);

// Whether a digest of bytes that were read from `readAt` on (nanoseconds since 1970) may be
// believed whenever a file has the same identity again. The last change must lie long enough before
// the reading. This is git's rule: a file system's clock is coarse, so a change right after the
// reading may leave the same time stamp. False where the clock says that the file was changed
// later.
bool isReadWellAfterChange(const FileIdentity& file, int64_t readAt);

// Remembers digests of files' content. Thread-safe.
class ContentMemory {
 public:
  virtual ~ContentMemory() = default;
  // The digest of a range of the file, if it was remembered under this identity and
  // isReadWellAfterChange() holds.
  virtual std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                                    uint64_t size) = 0;
  virtual void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                               const base::Sha256Digest& digest, int64_t readAt) = 0;

  // The key with which contents are tagged, or none where contents have no names. One that makes
  // names for the first time has a key after makeTagKey() only.
  virtual std::optional<base::UniversalHash::Key> tagKey() { return std::nullopt; }
  virtual std::optional<base::UniversalHash::Key> makeTagKey() { return std::nullopt; }
  // The digest of the content with that name (ContentTags::name()), wherever it was read before.
  virtual std::optional<base::Sha256Digest> namedContent(const base::Sha256Digest&) {
    return std::nullopt;
  }
  virtual void nameContent(const base::Sha256Digest&, const base::Sha256Digest&) {}
};

// A range of a file that is going to be read, and the identity of the file before: whoever packs
// the range and names its content later can tell whether both saw the same bytes.
class ContentSource {
 public:
  // Looks at the file as it is now. `mayBeWritten`: the range is memory that whoever has it mapped
  // can write without a trace. `gaps` do not count. The caller owns the descriptor and keeps it
  // open.
  static ContentSource of(int fd, uint64_t offset, uint64_t size, bool mayBeWritten = false,
                          std::vector<ContentGap> gaps = {});

  int fd() const { return fd_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }
  std::span<const ContentGap> gaps() const { return gaps_; }
  // Null where the identity proves nothing.
  const FileIdentity* file() const { return file_ ? &*file_ : nullptr; }
  // Of a file(): under what the digest of the range is remembered. It depends on the gaps, too.
  FileIdentity remembered() const;
  // Nanoseconds since 1970.
  int64_t seenAt() const { return seenAt_; }

  // Whether isUnchanged() can tell changes; otherwise only reading the bytes again can.
  bool tellsChanges() const;
  // Whether the system says that no byte has changed since of(). False where it cannot tell.
  bool isUnchanged() const;

 private:
  int fd_ = -1;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
  std::vector<ContentGap> gaps_;
  std::optional<FileIdentity> file_;
  int64_t seenAt_ = 0;
};

// Lets `memory` remember the digest of what was read of the range, if the file has not changed
// since `source` was made and its identity proves something.
void rememberHash(const ContentSource& source, const base::Sha256Digest& digest,
                  ContentMemory& memory);

// The digest that `memory` (may be null) remembers, without reading the range.
std::optional<base::Sha256Digest> recalledHash(const ContentSource& source, ContentMemory* memory);

// The digest that hashContent would give. Taken from `memory` (may be null) if it is there;
// otherwise the bytes are read, their number is added to `hashed`, and the digest is remembered if
// the file has not changed since `source` was made. What is read gets a name, and `tags` (may be
// null) gets its tags, where contents have names. Errors as hashContent.
Result<base::Sha256Digest> rememberedHash(const ContentSource& source, unsigned threads,
                                          ContentMemory* memory, std::atomic<uint64_t>& hashed,
                                          std::optional<ContentTags>* tags = nullptr);

}  // namespace hearth::cache
