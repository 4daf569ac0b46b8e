// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/checked_blocks.h"
#include "cache/identity/content_memory.h"
#include "cache/identity/latest_entries.h"
#include "cache/object/boot_id.h"
#include "cache/object/object_file.h"
#include "cache/object/store_key.h"

struct sqlite3;

namespace hearth::cache {

// What the store remembers about files in identity.sqlite: digests of their content, by file and by
// name, and which segment files were checked during this boot. Each entry has a checksum, so a
// damaged file merely forgets; a file that SQLite cannot read is deleted and created anew. No
// function reports an error. content() looks among the latest entries first, so that most starts
// open no database. Thread-safe; not usable in a forked child, which makes a new object.
class IdentityTable : public ContentMemory {
 public:
  // `folder` is the store's root, `path` its path. The first look-up opens the file.
  IdentityTable(int folder, std::string path, bool writable);
  ~IdentityTable() override;
  IdentityTable(const IdentityTable&) = delete;
  IdentityTable& operator=(const IdentityTable&) = delete;

  std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                            uint64_t size) override;
  void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt) override;

  // Only in a file of this user's that nobody else can read: whoever has the key can make contents
  // of one name.
  std::optional<base::UniversalHash::Key> tagKey() override;
  std::optional<base::UniversalHash::Key> makeTagKey() override;
  std::optional<base::Sha256Digest> namedContent(const base::Sha256Digest& name) override;
  void nameContent(const base::Sha256Digest& name, const base::Sha256Digest& digest) override;

  bool isChecked(const SegmentKey& key, const FileGeneration& file, const BootId& boot);
  void rememberChecked(const SegmentKey& key, const FileGeneration& file, const BootId& boot);

  // The name of the check of a file's blocks (block_checks.h).
  static base::Sha256Digest checkedKey(const SegmentKey& key, const FileGeneration& file,
                                       const BootId& boot);
  // For each check, how many of the first blocks were found right; UINT64_MAX = all, 0 = nothing is
  // known.
  std::vector<uint64_t> checkedBlocks(std::span<const base::Sha256Digest> checks);
  // All of them in one transaction.
  void rememberCheckedBlocks(std::span<const CheckedBlocks> checks);

  // Forgets entries that were not remembered again for `seconds`, and those with a time in the
  // future.
  void forgetOlderThan(int64_t seconds);

 private:
  bool open(bool forWriting);
  void close();
  // True when the file was unusable and has been removed.
  bool discardIfBroken(int code);
  std::optional<IdentityEntry> read(const base::Sha256Digest& key);
  // An entry, or none, for each key, all from one state of the database.
  std::vector<std::optional<IdentityEntry>> read(std::span<const base::Sha256Digest> keys);
  enum class IfThere { kReplace, kKeep };
  struct KeyedEntry {
    base::Sha256Digest key{};
    IdentityEntry entry;
  };
  void write(const base::Sha256Digest& key, const IdentityEntry& entry,
             IfThere ifThere = IfThere::kReplace);
  // All of them or none.
  void write(std::span<const KeyedEntry> entries, IfThere ifThere = IfThere::kReplace);
  bool isPrivate() const;

  const int folder_;
  const std::string path_;
  const bool writable_;
  base::Mutex mutex_;
  sqlite3* database_ = nullptr;
  bool isReadyForWriting_ = false;
  bool failed_ = false;  // do not try again
  base::Mutex keyMutex_;
  std::optional<base::UniversalHash::Key> tagKey_;
};

}  // namespace hearth::cache
