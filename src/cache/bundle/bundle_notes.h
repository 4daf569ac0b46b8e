// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"

namespace hearth::cache {

// What is remembered at the end of a bundle, the only part that is written again: digests of model
// files' content, facts, that the bundle is on disk for good, and when it was checked. 64 notes of
// 128 bytes with a checksum each; a damaged one only forgets, and a new one takes the place of the
// oldest. Writing keeps the file's time of modification, which tells whether anything else was
// written. No error ever comes out. Thread-safe.
class BundleNotes : public ContentMemory {
 public:
  static constexpr size_t kCount = 64;
  static constexpr size_t kNoteSize = 128;
  static constexpr size_t kBytes = kCount * kNoteSize;

  // In memory only, until read or attach.
  BundleNotes() = default;

  // Takes over what stands at `offset` of a bundle. `writable`: a descriptor to write notes with,
  // or none.
  void read(int fd, uint64_t offset, base::Descriptor writable);
  // Writes all that is known at `offset` of a new bundle. The descriptor serves later notes.
  void attach(base::Descriptor writable, uint64_t offset);
  // Whether what is noted outlives this process.
  bool isWritable();

  std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                            uint64_t size) override;
  void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt) override;

  // 32 bytes, not all zero, that were remembered under a key of the user's. Larger facts are in the
  // index, which is never written again.
  std::optional<base::Sha256Digest> fact(const base::Sha256Digest& key);
  void rememberFact(const base::Sha256Digest& key, const base::Sha256Digest& value);

  // Notes that only stand there or not.
  bool has(const base::Sha256Digest& key);
  void add(const base::Sha256Digest& key);
  // What names a check of blocks (block_checks.h), and how many of the first were right: UINT64_MAX
  // for all, 0 when nothing is known.
  uint64_t checkedBlocks(const base::Sha256Digest& check);
  void rememberCheckedBlocks(const base::Sha256Digest& check, uint64_t blocks, bool isAll);
  // Forgets all but content digests and facts: they are of another bundle.
  void keepContentsOnly();

 private:
  struct Note {
    base::Sha256Digest key{};
    base::Sha256Digest digest{};  // zeros for one that only stands there
    int64_t when = 0;             // nanoseconds since 1970; 0 = an empty place
  };
  static std::array<uint8_t, kNoteSize> bytesOf(const Note& note);
  std::optional<Note> find(const base::Sha256Digest& key);
  void put(const Note& note);
  void write(std::span<const uint8_t> bytes, uint64_t offset) const;

  base::Mutex mutex_;
  std::array<Note, kCount> notes_;
  base::Descriptor file_;
  uint64_t offset_ = 0;
};

}  // namespace hearth::cache
