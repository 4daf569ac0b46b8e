// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "cache/identity/identity_table.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_folder.h"
#include "cache/prefix/prefix_block.h"
#include "cache/store/store_options.h"
#include "memory/mapping.h"

namespace hearth::cache {

struct PrefixStoreOptions {
  std::string path;  // the weight store's folder, in which the blocks have a folder of their own
  StoreMode mode = StoreMode::kReadWrite;
  uint64_t maxBytes = uint64_t{2} << 30;                // on disk
  std::chrono::seconds maxAge = std::chrono::days(30);  // since a block was last used

  // The folder and mode of a weight store. Error: kNoHome when that has no folder, kOff when it is
  // switched off or is a bundle.
  static StoreResult<PrefixStoreOptions> of(const StoreOptions& options);
};

// What language models have computed of the beginnings of texts, kept in the folder `prefixes` of a
// weight store for later processes. Each block is a file in the format of a segment, named by its
// key, that only the user can read; it is written under another name and renamed. Blocks that were
// not used for long, or that exceed the limit, are removed, those that others follow only after
// these. No failure is fatal: the caller computes. Thread-safe.
class PrefixStore {
 public:
  // Errors: kOff, and those of StoreFolder::open(); kAbsent where nothing is there and the mode is
  // read-only.
  static StoreResult<std::shared_ptr<PrefixStore>> open(const PrefixStoreOptions& options);

  // A block that was found, as a file and mapped for reading.
  struct Found {
    base::Descriptor file;  // begins with the data
    memory::Mapping block;  // the data, and behind them the block's head
  };
  // Maps a block with `size` bytes of data, or with as many as it has. Every byte is compared with
  // its digest, unless that was done during this boot and the file proves that it has not changed
  // since. A block that is not what was written is removed. Errors: kAbsent, also for a block that
  // was not used for too long; kCorrupt, also for one with data of another size; kForeign,
  // kIoError.
  StoreResult<Found> read(const PrefixKey& key, std::optional<size_t> size = {}) const;

  // Keeps a block, in place of one with the same key, and then removes what exceeds the limits.
  // Errors: kReadOnly, kNoSpace, kGone, kIoError, kOverLimit for a block larger than the limit.
  StoreStatus write(const PrefixBlock& block, std::vector<uint8_t> data) const;

  struct Entry {
    PrefixBlock block;
    uint64_t bytesOnDisk = 0;
    int64_t lastUsed = 0;    // nanoseconds since 1970, exact to an hour
    bool isCorrupt = false;  // then only the block's key is known
  };
  // All blocks, in no order. Their data are not checked.
  std::vector<Entry> entries() const;

  // A missing block counts as removed. Errors: kReadOnly, kIoError.
  StoreStatus remove(const PrefixKey& key) const;

  // SegmentStore::contentHash with the memory of this store.
  Result<base::Sha256Digest> contentHash(const ContentSource& source) const;

  const std::string& path() const { return folder_->path(); }

 private:
  explicit PrefixStore(PrefixStoreOptions options) : options_(std::move(options)) {}
  bool isWritten() const { return options_.mode != StoreMode::kReadOnly; }
  StoreResult<ObjectFile> openBlock(const PrefixKey& key) const;
  StoreResult<memory::Mapping> mapBlock(const ObjectFile& file, const PrefixKey& key,
                                        std::optional<size_t> size) const;
  void prune() const;

  const PrefixStoreOptions options_;
  std::shared_ptr<const StoreFolder> folder_;
  base::Descriptor blocks_;
  std::unique_ptr<IdentityTable> identities_;
};

}  // namespace hearth::cache
