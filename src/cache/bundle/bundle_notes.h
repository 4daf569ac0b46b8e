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

// Notes at the end of a bundle, the only part that is written again: digests of model files'
// content, facts, whether the bundle is synced, and how far it was checked. There are 64 notes of
// 128 bytes, each with a checksum. A damaged note is forgotten, and a new one replaces the oldest.
// Writing a note keeps the file's time of modification, which tells whether anything else was
// written, and never makes the file longer. No function reports an error. Thread-safe.
class BundleNotes : public ContentMemory {
 public:
  static constexpr size_t kCount = 64;
  static constexpr size_t kNoteSize = 128;
  static constexpr size_t kBytes = kCount * kNoteSize;

  // Keeps notes in memory only, until read() or attach().
  BundleNotes() = default;

  // Takes over the notes at `offset` of a bundle. `writable` is a descriptor for writing notes; it
  // may be invalid.
  void read(int fd, uint64_t offset, base::Descriptor writable);
  // Writes all notes at `offset` of a new bundle. The descriptor is kept for later notes.
  void attach(base::Descriptor writable, uint64_t offset);
  // Whether notes outlive this process.
  bool isWritable();

  std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                            uint64_t size) override;
  void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt) override;

  // A value of 32 bytes, not all zero, under a key of the user's. Larger facts are in the index,
  // which is never written again.
  std::optional<base::Sha256Digest> fact(const base::Sha256Digest& key);
  void rememberFact(const base::Sha256Digest& key, const base::Sha256Digest& value);

  // Notes without a value, which are there or not.
  bool has(const base::Sha256Digest& key);
  void add(const base::Sha256Digest& key);
  // The name of a check of blocks (block_checks.h), and how many of the first blocks were right:
  // UINT64_MAX = all, 0 = nothing is known.
  uint64_t checkedBlocks(const base::Sha256Digest& check);
  void rememberCheckedBlocks(const base::Sha256Digest& check, uint64_t blocks, bool isAll);
  // Forgets the notes without a value: they are about another bundle.
  void keepContentsOnly();

 private:
  struct Note {
    base::Sha256Digest key{};
    base::Sha256Digest digest{};  // zeros for a note without a value
    int64_t when = 0;             // nanoseconds since 1970; 0 = an unused place
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
