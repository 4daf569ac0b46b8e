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

// Small values that a driver keeps for later processes: what it measured, tested or compiled, under
// keys that cover all it depends on. They lie in one file, which all processes of the user share;
// each driver names its own file. The cache may forget anything at any time: a file that is damaged
// or that somebody else owns counts as empty. Only save(), removeAll() and verify() report errors.
//
// Thread-safe. A forked child calls closeInChild() and makes a new object.
class BlobCache {
 public:
  // Uses the file `name` in `folder`; with a null folder all stays in memory. The first look-up
  // reads the file.
  BlobCache(std::shared_ptr<const StoreFolder> folder, std::string name,
            const BlobLimits& limits = {}, BlobPolicy policy = {});
  BlobCache(const BlobCache&) = delete;
  BlobCache& operator=(const BlobCache&) = delete;

  // Returns the value, also one that another process saved a moment ago, and marks it as used. The
  // mark is saved with the next change only, so uses by processes that change nothing do not count
  // later.
  std::optional<std::vector<uint8_t>> get(std::string_view key);
  // Copies the value into the buffer and returns its size; 0 when there is none. A buffer that is
  // too small is left alone, and the value is not marked as used.
  size_t get(std::string_view key, std::span<uint8_t> buffer);

  // Adds or replaces a value, in memory until save(). Where BlobTable::set refuses the value,
  // nothing changes.
  void set(std::string_view key, std::span<const uint8_t> value);
  void remove(std::string_view key);

  // Merges the changes since the last call with what other processes saved meanwhile, and replaces
  // the file durably. Of two processes that change one key, the last to save wins. Without changes
  // nothing is written. Errors: kReadOnly, kNoSpace, kGone, kIoError; kBusy while another process
  // holds the lock. After an error the changes wait for the next call.
  StoreStatus save();

  // Removes the file and forgets all values. Errors as save().
  StoreStatus removeAll();
  // The number of entries in the file. A damaged file is removed where that is allowed, and the
  // error says what was wrong.
  StoreResult<uint64_t> verify();

  uint64_t count();
  // The size of all keys and values.
  uint64_t bytes();

  // In a forked child: closes the lock file of the parent.
  void closeInChild();

 private:
  StoreResult<BuildLock::Hold> lockFile();
  // The functions below are called under mutex_.
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
  // Keys that were set, or removed if the table has none of that name, with the number of the
  // change.
  std::map<std::string, uint64_t, std::less<>> changes_;
  uint64_t changeCount_ = 0;
  std::optional<FileGeneration> seen_;  // the file that was last merged
  int64_t lastStamp_ = 0;
  std::shared_ptr<BuildLock> lock_;
};

}  // namespace hearth::cache
