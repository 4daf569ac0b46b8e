// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "cache/segment.h"
#include "cache/segment_file.h"
#include "cache/store_folders.h"

namespace hearth::cache {

// Where an object was found, for what is done about it in the background.
struct SegmentOrigin {
  FolderRef folder;
  FileGeneration generation;
  SegmentInfo info;
  bool durable = false;  // known to be on disk for good
  bool checked = false;  // every byte was compared with its digest, or written by this process
  std::weak_ptr<const Segment> segment;
};

// A payload in a file of the store that has no name yet, since nobody has computed its digest.
// Removed when it is not finished.
struct SegmentDraft {
  FolderRef folder;
  TempObject file;
  memory::Mapping payload;  // the file's pages
};

// Finds, writes and drops segment objects in the folders of a store. Thread-safe.
class SegmentTable {
 public:
  // `opened` is told of every object that find or write opened, on the caller's thread.
  SegmentTable(StoreFolders& folders, std::function<void(SegmentOrigin)> opened);

  FoundSegment find(const SegmentKey& key);

  // Writes a new object and maps it. Finds the one that is there instead, if it is whole.
  StoreResult<SegmentRef> write(const SegmentKey& key, const SegmentPayload& payload);

  // Writes the bytes of an object only. Errors as write.
  StoreResult<SegmentDraft> draft(std::span<const uint8_t> payload);
  // Makes it the object of contentSegmentKey, whose segment has the draft's mapping. Finds the one
  // that is there instead, if it is whole.
  StoreResult<SegmentRef> finish(SegmentDraft draft);

  // Takes a wrong object out of use: nobody finds it again, and it is removed where it may be. Its
  // users' segment is marked, and `dropped` is called once for each such object.
  void drop(const SegmentOrigin& origin, const StoreFailure& why);
  void onDropped(std::function<void(const SegmentKey&, const StoreFailure&)> handler) {
    dropped_ = std::move(handler);
  }

  // Syncs an object and then marks it as being on disk; origin.generation follows. An object that
  // cannot be synced is dropped. kGone when it is no longer there.
  StoreStatus makeDurable(SegmentOrigin& origin);

  // Starts writing an object's pages to disk without waiting, so that many syncs that follow share
  // one commit of the file system's journal.
  void startWriting(const SegmentOrigin& origin) const;

  // Compares all blocks with their digests: kCorrupt, kIoError, kGone when `cancelled` said so.
  StoreStatus check(const SegmentOrigin& origin, const std::function<bool()>& cancelled);

  // Reads and checks one object of a folder; drops it when it is wrong. Errors as find.
  StoreStatus verify(const FolderRef& folder, const SegmentKey& key);

  struct Counters {
    std::atomic<uint64_t> found = 0;
    std::atomic<uint64_t> written = 0;
    std::atomic<uint64_t> writtenBytes = 0;
    std::atomic<uint64_t> corrupt = 0;
  };
  const Counters& counters() const { return counters_; }

  // For a forked child: takes over which segments are mapped.
  void inherit(SegmentTable& parent);

 private:
  struct Opened {
    base::Descriptor descriptor;
    SegmentOrigin origin;
  };
  StoreResult<Opened> open(const FolderRef& folder, const SegmentKey& key);
  StoreStatus checkNow(const Opened& opened);
  StoreResult<SegmentRef> load(const FolderRef& folder, const SegmentKey& key);
  StoreResult<SegmentRef> writeIn(const FolderRef& folder, const SegmentKey& key,
                                  const SegmentPayload& payload);
  StoreResult<SegmentRef> place(SegmentDraft& draft, SegmentInfo info);
  bool reject(const FileGeneration& generation);
  bool isRejected(const FileGeneration& generation);
  StoreResult<std::pair<ObjectFile, bool>> openFile(const StoreFolder& folder,
                                                    const SegmentKey& key) const;
  bool isInStore(const SegmentKey& key) const;
  SegmentRef share(const SegmentKey& key, SegmentRef segment);

  StoreFolders& folders_;
  mutable std::atomic<bool> areDurable_ = true;  // those that were opened last
  const std::function<void(SegmentOrigin)> opened_;
  std::function<void(const SegmentKey&, const StoreFailure&)> dropped_;
  Counters counters_;
  base::Mutex mutex_;
  std::unordered_map<SegmentKey, std::weak_ptr<const Segment>> mapped_;
  // Wrong objects, by device, inode and time of change: an inode's number is used again.
  std::set<std::tuple<uint64_t, uint64_t, int64_t>> rejected_;
};

}  // namespace hearth::cache
