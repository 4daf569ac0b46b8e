// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/boot_id.h"
#include "cache/object_file.h"
#include "cache/segment_key.h"

struct sqlite3;

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

// What the store remembers about files in identity.sqlite: digests of their content, and which
// segment files were checked during this boot. Every entry carries a checksum, so a damaged file
// only forgets; one that SQLite cannot read is deleted and made anew. No error ever comes out.
// Thread-safe; not usable in a forked child (a new object is).
class IdentityTable {
 public:
  // `folder` is the store's root, `path` its path. Nothing is opened before the first question.
  IdentityTable(int folder, std::string path, bool writable);
  ~IdentityTable();
  IdentityTable(const IdentityTable&) = delete;
  IdentityTable& operator=(const IdentityTable&) = delete;

  // The digest of a range of the file, if it was remembered while the file was the same, and was
  // last changed long enough before it was read (git's rule: a file system's clock is coarse, so a
  // change right after reading may leave the same time stamp).
  std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                            uint64_t size);
  // `readAt`: nanoseconds since 1970, before the first byte was read.
  void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt);

  bool isChecked(const SegmentKey& key, const FileGeneration& file, const BootId& boot);
  void rememberChecked(const SegmentKey& key, const FileGeneration& file, const BootId& boot);

  // Forgets what has not been remembered anew for `seconds`.
  void forgetOlderThan(int64_t seconds);

  // For fork: locked, no thread is inside SQLite.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Entry {
    base::Sha256Digest digest{};
    int64_t when = 0;
  };

  bool open();
  void close();
  // True when the file was unusable and has been removed.
  bool discardIfBroken(int code);
  std::optional<Entry> read(const base::Sha256Digest& key);
  void write(const base::Sha256Digest& key, const Entry& entry);

  const int folder_;
  const std::string path_;
  const bool writable_;
  std::mutex mutex_;
  sqlite3* database_ = nullptr;
  bool failed_ = false;  // not to be tried again
};

}  // namespace hearth::cache
