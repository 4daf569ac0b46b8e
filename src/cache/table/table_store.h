// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "cache/identity/identity_table.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_folder.h"
#include "cache/object/store_key.h"
#include "cache/store/store_options.h"
#include "memory/mapping.h"

namespace hearth::cache {

// Names a table. Whoever makes it takes the SHA-256 of all that the table is made of, the code that
// makes it among them.
using TableKey = StoreKey<struct TableTag>;

// Who makes a table.
enum class TableKind : uint8_t {
  kTokenizer,  // of a language model
  kDelegate,   // what a vendor's library takes of a model, and the files that it keeps
};
std::string_view tableKindName(TableKind kind);  // "tokenizer", "delegate"

struct TableStoreOptions {
  std::string path;  // the weight store's folder, in which the tables have a folder of their own
  StoreMode mode = StoreMode::kReadWrite;
  // Of the tables that are read and written. Without it, those that say none, as all did before
  // 30 November 2026.
  std::optional<TableKind> kind;
  uint64_t maxBytes = uint64_t{256} << 20;              // on disk
  std::chrono::seconds maxAge = std::chrono::days(30);  // since a table was last used

  // The folder and mode of a weight store. Error: kNoHome when that has no folder, kOff when it is
  // switched off or is a bundle.
  static StoreResult<TableStoreOptions> of(const StoreOptions& options, TableKind kind);
};

// What takes long to make of a small part of a model's file, as the table of its tokenizer, kept in
// the folder `tables` of a weight store. Each table is a file in the format of a segment, named by
// its key and its kind; it is written under another name and renamed, and mapped by all processes
// that use it. Those that were not used for long, or that exceed the limit, are removed. No failure
// is fatal: the caller makes the table. Thread-safe.
class TableStore {
 public:
  // A table that is mapped for reading, at a multiple of the page size. Movable.
  using Table = memory::Mapping;

  // Errors: kOff, and those of StoreFolder::open(); kAbsent where nothing is there and the mode is
  // read-only.
  static StoreResult<std::shared_ptr<const TableStore>> open(const TableStoreOptions& options);

  // Maps a table. Every byte is compared with its digest, unless that was done during this boot and
  // the file proves that it has not changed since. A file that is not what was written is removed.
  // One that says no kind serves as well. The mapping stays valid when the file is removed. Errors:
  // kAbsent, kCorrupt, kForeign, kIoError.
  StoreResult<Table> read(const TableKey& key) const;

  // Keeps a table that is not empty, in place of one with the same key, and then removes what
  // exceeds the limits. Errors: kReadOnly, kNoSpace, kGone, kIoError, kOverLimit for a table larger
  // than the limit.
  StoreStatus write(const TableKey& key, std::span<const uint8_t> table) const;

  // Removes a table whose bytes are right but do not serve; best effort. What is mapped stays.
  void remove(const TableKey& key) const;

  struct Entry {
    TableKey key;
    std::optional<TableKind> kind;
    uint64_t bytes = 0;    // of its file
    int64_t lastUsed = 0;  // nanoseconds since 1970, exact to an hour
  };
  // All tables, of any kind, those used last first. Their bytes are not checked.
  std::vector<Entry> entries() const;

  // The digest of a file's content that rememberContent() was told, if the file proves that it has
  // not changed since.
  std::optional<base::Sha256Digest> recalledContent(const ContentSource& source) const {
    return recalledHash(source, identities_.get());
  }
  // `digest`: hashContent() of the bytes, read since `source` was made.
  void rememberContent(const ContentSource& source, const base::Sha256Digest& digest) const {
    rememberHash(source, digest, *identities_);
  }

 private:
  explicit TableStore(TableStoreOptions options) : options_(std::move(options)) {}
  bool isWritten() const { return options_.mode != StoreMode::kReadOnly; }
  StoreResult<Table> readNamed(const std::string& name, const TableKey& key) const;
  void prune() const;

  const TableStoreOptions options_;
  std::shared_ptr<const StoreFolder> folder_;
  base::Descriptor tables_;
  std::unique_ptr<IdentityTable> identities_;
};

}  // namespace hearth::cache
