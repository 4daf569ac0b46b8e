// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cache/blob/blob_cache_file.h"
#include "cache/blob/blob_table.h"
#include "cache/object/build_lock.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_folder.h"

namespace hearth::cache {

// Small values that a driver wants to find again: what it measured, tested or compiled, under keys
// that say all it depends on. One file holds them, which all processes of the user share; each
// driver names its own. It may forget anything at any time: a file that is damaged or somebody
// else's is an empty cache. Nothing is an error for a driver but what save() says.
//
// Thread-safe. Not usable in a forked child (a new object is), which calls closeInChild().
class BlobCache {
 public:
  // The file `name` in `folder`; a null folder keeps all in memory. Nothing is read before the
  // first question.
  BlobCache(std::shared_ptr<const StoreFolder> folder, std::string name,
            const BlobLimits& limits = {}, BlobPolicy policy = {});
  BlobCache(const BlobCache&) = delete;
  BlobCache& operator=(const BlobCache&) = delete;

  // The value, also when another process saved it a moment ago. It counts as used; that is saved
  // together with the next change, so uses by processes that change nothing do not count for later
  // ones.
  std::optional<std::vector<uint8_t>> get(std::string_view key);
  // Copies the value and gives its size; when the buffer is smaller, the buffer is left alone and
  // the value does not count as used. 0 when there is none.
  size_t get(std::string_view key, std::span<uint8_t> buffer);

  // Adds or replaces a value, in memory until save(). Nothing happens where BlobTable::set takes
  // nothing: what was there stays.
  void set(std::string_view key, std::span<const uint8_t> value);
  void remove(std::string_view key);

  // Adds what changed since the last call to what other processes saved meanwhile, and puts the
  // file in place, durably. Of two processes that change one key, the one that saves last wins.
  // Nothing is written when nothing changed. kReadOnly, kNoSpace, kGone, kIoError, kBusy while
  // another process keeps the lock: changes then wait for the next call.
  StoreStatus save();

  // Removes the file and forgets all.
  StoreStatus removeAll();
  // How many entries the file has; one that is not right is removed where that is allowed, with the
  // reason as error.
  StoreResult<uint64_t> verify();

  uint64_t count();
  // Keys and values of all entries.
  uint64_t bytes();

  // In a forked child: lets the parent's file lock go.
  void closeInChild();

 private:
  StoreResult<BuildLock::Hold> lockFile();
  // The rest is called under mutex_.
  void refresh();
  void merge(BlobMap saved);
  void changed(std::string_view key);
  int64_t stamp();

  const std::shared_ptr<const StoreFolder> folder_;
  const std::string name_;
  const BlobLimits limits_;
  const BlobPolicy policy_;
  std::mutex saveMutex_;  // taken before mutex_; one save at a time
  base::Mutex mutex_;
  BlobTable table_;
  // Keys that were set, or removed where the table has none, by the number of the change.
  std::map<std::string, uint64_t, std::less<>> changes_;
  uint64_t changeCount_ = 0;
  std::optional<FileGeneration> seen_;  // the file that the table was last merged with
  int64_t lastStamp_ = 0;
  std::shared_ptr<BuildLock> lock_;
};

}  // namespace hearth::cache
