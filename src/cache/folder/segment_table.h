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
#include "cache/folder/store_folders.h"
#include "cache/segment/segment.h"
#include "cache/segment/segment_file.h"

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

  // Writes a new object and maps it. Gives the one that is there instead, if it holds the same
  // bytes; one that holds others is dropped.
  StoreResult<SegmentRef> write(const SegmentKey& key, const SegmentPayload& payload);

  // Writes the bytes of an object only. Errors as write.
  StoreResult<SegmentDraft> draft(std::span<const uint8_t> payload);
  // Makes it the object of contentSegmentKey, whose segment has the draft's mapping. Gives the one
  // that is there instead as write does.
  StoreResult<SegmentRef> finish(SegmentDraft draft);

  // Takes a wrong object out of use: nobody finds it again, and it is removed where it may be. Its
  // users' segment is marked, and `dropped` is called once for each such object.
  void drop(const SegmentOrigin& origin, const StoreFailure& why);
  void onDropped(std::function<void(const SegmentKey&, const StoreFailure&)> handler) {
    dropped_ = std::move(handler);
  }

  // Where wrong objects are remembered that cannot be removed: those of system stores.
  struct WrongObjects {
    std::function<bool(const SegmentKey&, const FileGeneration&)> has;
    std::function<void(const SegmentKey&, const FileGeneration&)> add;
  };
  void rememberWrong(WrongObjects memory) { wrong_ = std::move(memory); }

  // Syncs an object and then marks it as being on disk; origin.generation follows. An object that
  // cannot be synced is dropped. kGone when it is no longer there.
  StoreStatus makeDurable(SegmentOrigin& origin);

  // Starts writing an object's pages to disk without waiting, so that many syncs that follow share
  // one commit of the file system's journal.
  void startWriting(const SegmentOrigin& origin) const;

  // Compares the blocks from `from` on with their digests: kCorrupt, kIoError, kGone when it is no
  // longer there. No error when `progress` ended it.
  StoreStatus check(const SegmentOrigin& origin, uint64_t from, const BlockProgress& progress);

  // Reads and checks one object of a folder; drops it when it is wrong. Errors as find.
  StoreStatus verify(const FolderRef& folder, const SegmentKey& key);

  struct Counters {
    std::atomic<uint64_t> found = 0;
    std::atomic<uint64_t> written = 0;
    std::atomic<uint64_t> writtenBytes = 0;
    std::atomic<uint64_t> corrupt = 0;
  };
  const Counters& counters() const { return counters_; }

  // For a forked child: takes over which segments are mapped. The keys of those that are known to
  // be wrong: a thread that repairs what uses them may have been at it in the parent.
  std::vector<SegmentKey> inherit(SegmentTable& parent);

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
  FoundSegment findSame(const SegmentKey& key, size_t size, const PayloadReader& right);
  SegmentRef mappedFrom(const SegmentKey& key, const FileGeneration& file);
  SegmentRef share(const SegmentKey& key, SegmentRef segment, const FileGeneration& file);

  StoreFolders& folders_;
  mutable std::atomic<bool> areDurable_ = true;  // those that were opened last
  const std::function<void(SegmentOrigin)> opened_;
  std::function<void(const SegmentKey&, const StoreFailure&)> dropped_;
  WrongObjects wrong_;  // before the first use of any object
  Counters counters_;
  base::Mutex mutex_;
  struct Mapped {
    std::weak_ptr<const Segment> segment;
    uint64_t device = 0;  // of its file
    uint64_t inode = 0;
  };
  std::unordered_map<SegmentKey, Mapped> mapped_;
  // Wrong objects, by device, inode and time of change: an inode's number is used again.
  std::set<std::tuple<uint64_t, uint64_t, int64_t>> rejected_;
};

}  // namespace hearth::cache
