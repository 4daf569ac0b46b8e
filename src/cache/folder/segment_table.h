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
#include "cache/store/store_counters.h"

namespace hearth::cache {

// Where an object was found, for the work that is done on it in the background.
struct SegmentOrigin {
  FolderRef folder;
  FileGeneration generation;
  SegmentInfo info;
  bool durable = false;  // known to be on disk for good
  bool checked = false;  // every byte was compared with its digest, or written by this process
  std::weak_ptr<const Segment> segment;
};

// A payload in a file of the store that has no name yet, since its digest is not computed. Removed
// unless finish() is called.
struct SegmentDraft {
  FolderRef folder;
  TempObject file;
  memory::Mapping payload;  // the file's pages
};

// Finds, writes and drops segment objects in the folders of a store. Thread-safe.
class SegmentTable {
 public:
  // `opened` is called on the caller's thread for every object that find() or write() opens.
  SegmentTable(StoreFolders& folders, StoreTally& tally, std::function<void(SegmentOrigin)> opened);

  FoundSegment find(const SegmentKey& key);

  // Writes a new object and maps it. Returns the object that is there instead if it holds the same
  // bytes; one that holds others is dropped. Errors as WeightStore::publish.
  StoreResult<SegmentRef> write(const SegmentKey& key, const SegmentPayload& payload);

  // Writes only the bytes of an object. Errors as write().
  StoreResult<SegmentDraft> draft(std::span<const uint8_t> payload);
  // Makes a draft whose bytes the caller writes and maps (mapDraft). Errors as write().
  StoreResult<SegmentDraft> startDraft(size_t size);
  // Maps the payload of a draft when all its bytes are written. Errors: kIoError.
  static StoreStatus mapDraft(SegmentDraft& draft, size_t size);
  // Names the draft by its content (contentSegmentKey) and returns a segment with the draft's
  // mapping. Returns an equal object that is there instead, as write() does.
  StoreResult<SegmentRef> finish(SegmentDraft draft);

  // Takes a wrong object out of use: it is never found again, and its file is removed where that is
  // allowed. Marks the segment that its users hold, and calls `dropped` once for each such object.
  void drop(const SegmentOrigin& origin, const StoreFailure& why);
  void onDropped(std::function<void(const SegmentKey&, const StoreFailure&)> handler) {
    dropped_ = std::move(handler);
  }

  // Remembers wrong objects that cannot be removed: those of system stores.
  struct WrongObjects {
    std::function<bool(const SegmentKey&, const FileGeneration&)> has;
    std::function<void(const SegmentKey&, const FileGeneration&)> add;
  };
  void rememberWrong(WrongObjects memory) { wrong_ = std::move(memory); }

  // Syncs an object and then renames it to its final name; updates `origin`. An object that cannot
  // be synced is dropped. kGone when it is no longer there.
  StoreStatus makeDurable(SegmentOrigin& origin);

  // Starts writing an object's pages to disk without waiting, so that the syncs that follow share
  // one commit of the file system's journal.
  void startWriting(const SegmentOrigin& origin) const;

  // Compares the blocks from `from` on with their digests. Returns no error when `progress` ended
  // it. Errors: kCorrupt, kIoError, kGone when the object is no longer there.
  StoreStatus check(const SegmentOrigin& origin, uint64_t from, const BlockProgress& progress);

  // Reads and checks one object of a folder, and drops it when it is wrong. Errors as find().
  StoreStatus verify(const FolderRef& folder, const SegmentKey& key);

  // For a forked child: takes over the table of mapped segments. Returns the keys of those known to
  // be wrong, since the parent's thread that was to repair their users does not exist in the child.
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
  StoreTally& tally_;
  mutable std::atomic<bool> areDurable_ = true;  // of the object opened last
  const std::function<void(SegmentOrigin)> opened_;
  std::function<void(const SegmentKey&, const StoreFailure&)> dropped_;
  WrongObjects wrong_;  // set before the first use of any object
  base::Mutex mutex_;
  struct Mapped {
    std::weak_ptr<const Segment> segment;
    uint64_t device = 0;  // of its file
    uint64_t inode = 0;
  };
  std::unordered_map<SegmentKey, Mapped> mapped_;
  // Wrong objects by device, inode and time of change, since inode numbers are reused.
  std::set<std::tuple<uint64_t, uint64_t, int64_t>> rejected_;
};

}  // namespace hearth::cache
