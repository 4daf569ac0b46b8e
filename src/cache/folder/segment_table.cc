// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/segment_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/log.h"
#include "cache/identity/content_hash.h"

namespace hearth::cache {
namespace {

StoreResult<memory::Mapping> orFailure(Result<memory::Mapping> mapping) {
  if (!mapping) return storeFail(StoreReason::kIoError, "{}", mapping.error().toString());
  return std::move(*mapping);
}

// Maps the payload of a whole file, whose tail provides the readable bytes behind it.
StoreResult<memory::Mapping> mapPayload(int fd, uint64_t size) {
  static_assert(kLeastSegmentTail >= memory::Mapping::kReadableBehind);
  return orFailure(memory::Mapping::insideFile(fd, 0, static_cast<size_t>(size)));
}

// Whether the file is that of the other generation, and nobody has written to it since. A new name
// or mode is no such change.
bool hasBytesOf(const FileGeneration& file, const FileGeneration& other) {
  return file.device == other.device && file.inode == other.inode && file.size == other.size &&
         file.modified == other.modified;
}

}  // namespace

SegmentTable::SegmentTable(StoreFolders& folders, StoreTally& tally,
                           std::function<void(SegmentOrigin)> opened)
    : folders_(folders), tally_(tally), opened_(std::move(opened)) {}

FoundSegment SegmentTable::find(const SegmentKey& key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto mapped = mapped_.find(key); mapped != mapped_.end())
      if (SegmentRef segment = mapped->second.segment.lock(); segment && !segment->isCorrupt())
        return {std::move(segment)};
  }
  FoundSegment result{.reason = StoreReason::kAbsent};
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const FolderRef& folder : folders_.searchOrder()) {
      auto segment = load(folder, key);
      if (segment) {
        tally_.add(&StoreCounters::segmentsFound);
        return {std::move(*segment)};
      }
      if (segment.error().reason != StoreReason::kAbsent) result.reason = segment.error().reason;
    }
    if (result.reason != StoreReason::kAbsent || !folders_.reopenIfGone()) break;
  }
  return result;
}

StoreResult<std::pair<ObjectFile, bool>> SegmentTable::openFile(const StoreFolder& folder,
                                                                const SegmentKey& key) const {
  // Segments that are used together were mostly written together, so the last name is the best
  // guess. Another process may rename the object between the first two attempts, hence the third.
  const bool guess = areDurable_.load(std::memory_order_relaxed);
  for (const bool durable : {guess, !guess, guess}) {
    auto file = openObject(folder.segments(), StoreFolder::segmentPath(key, durable));
    if (file) {
      areDurable_.store(durable, std::memory_order_relaxed);
      return std::pair(std::move(*file), durable);
    }
    if (file.error().reason != StoreReason::kAbsent)
      return std::unexpected(std::move(file.error()));
  }
  return storeFail(StoreReason::kAbsent, "There is no segment {}.", key.hex());
}

StoreResult<SegmentTable::Opened> SegmentTable::open(const FolderRef& folder,
                                                     const SegmentKey& key) {
  HEARTH_ASSIGN(auto file, openFile(*folder, key));
  const FileGeneration& generation = file.first.generation;
  Opened opened{.descriptor = std::move(file.first.descriptor),
                .origin = {.folder = folder, .generation = generation, .durable = file.second}};
  opened.origin.info.key = key;
  if (isRejected(generation) ||
      (!folder->isWritable() && wrong_.has && wrong_.has(key, generation)))
    return storeFail(StoreReason::kCorrupt, "The segment {} is known to be wrong.", key.hex());
  auto info = readSegmentInfo(opened.descriptor.get(), generation.size, key);
  if (!info) {
    if (info.error().reason == StoreReason::kCorrupt) drop(opened.origin, info.error());
    return std::unexpected(std::move(info.error()));
  }
  opened.origin.info = std::move(*info);
  return opened;
}

StoreStatus SegmentTable::checkNow(const Opened& opened) {
  StoreStatus status = checkSegmentBlocks(opened.descriptor.get(), opened.origin.info);
  if (!status && status.error().reason == StoreReason::kCorrupt)
    drop(opened.origin, status.error());
  return status;
}

StoreStatus SegmentTable::verify(const FolderRef& folder, const SegmentKey& key) {
  HEARTH_ASSIGN(Opened opened, open(folder, key));
  {
    const std::lock_guard lock(mutex_);
    if (const auto mapped = mapped_.find(key); mapped != mapped_.end())
      opened.origin.segment = mapped->second.segment;
  }
  return checkNow(opened);
}

StoreResult<SegmentRef> SegmentTable::load(const FolderRef& folder, const SegmentKey& key) {
  HEARTH_ASSIGN(Opened opened, open(folder, key));
  SegmentOrigin& origin = opened.origin;
  // An object whose sync was never confirmed may hold zeros after a power failure.
  const bool isDoubtful = !origin.durable && !isSameBoot(origin.info.writtenIn, folders_.boot());
  if (folders_.isStrict() || isDoubtful) {
    HEARTH_TRY(checkNow(opened));
    origin.checked = true;
  }
  HEARTH_ASSIGN(memory::Mapping mapping,
                mapPayload(opened.descriptor.get(), origin.info.payloadSize));
  SegmentRef segment =
      share(key, std::make_shared<Segment>(key, std::move(mapping)), origin.generation);
  origin.segment = segment;
  opened_(std::move(origin));
  return segment;
}

SegmentRef SegmentTable::share(const SegmentKey& key, SegmentRef segment,
                               const FileGeneration& file) {
  const std::lock_guard lock(mutex_);
  Mapped& mapped = mapped_[key];
  if (SegmentRef other = mapped.segment.lock(); other && !other->isCorrupt()) return other;
  mapped = {segment, file.device, file.inode};
  return segment;
}

// The segment that this process has mapped of this very file.
SegmentRef SegmentTable::mappedFrom(const SegmentKey& key, const FileGeneration& file) {
  const std::lock_guard lock(mutex_);
  const auto mapped = mapped_.find(key);
  if (mapped == mapped_.end() || mapped->second.device != file.device ||
      mapped->second.inode != file.inode)
    return nullptr;
  return mapped->second.segment.lock();
}

// Finds a segment that holds the bytes in the caller's hands. All bytes are compared: an object
// that merely bears the right name must not replace them. Otherwise gives the reason why there is
// none.
FoundSegment SegmentTable::findSame(const SegmentKey& key, size_t size,
                                    const PayloadReader& right) {
  FoundSegment none{.reason = StoreReason::kAbsent};
  for (const FolderRef& folder : folders_.searchOrder()) {
    auto opened = open(folder, key);
    if (!opened) {
      if (opened.error().reason != StoreReason::kAbsent) none.reason = opened.error().reason;
      continue;
    }
    SegmentOrigin& origin = opened->origin;
    SegmentRef mapped = mappedFrom(key, origin.generation);
    origin.segment = mapped;
    const StoreStatus status =
        origin.info.payloadSize == size
            ? compareSegmentBlocks(opened->descriptor.get(), origin.info, right)
            : storeFail(StoreReason::kCorrupt, "The segment {} has {} bytes instead of {}.",
                        key.hex(), origin.info.payloadSize, size);
    if (!status && status.error().reason == StoreReason::kCorrupt) drop(origin, status.error());
    if (!status) continue;
    tally_.add(&StoreCounters::segmentsFound);
    if (mapped != nullptr && !mapped->isCorrupt()) return {mapped};
    auto mapping = mapPayload(opened->descriptor.get(), size);
    if (!mapping) continue;
    mapped = std::make_shared<Segment>(key, std::move(*mapping));
    {
      // Replaces a mapping of another file, which was not compared.
      const std::lock_guard lock(mutex_);
      mapped_[key] = {mapped, origin.generation.device, origin.generation.inode};
    }
    origin.segment = mapped;
    origin.checked = true;
    opened_(std::move(origin));
    return {mapped};
  }
  return none;
}

StoreResult<SegmentRef> SegmentTable::write(const SegmentKey& key, const SegmentPayload& payload) {
  const auto right = [&](uint64_t offset, size_t size) {
    return StoreResult<std::span<const uint8_t>>(payload.bytes.subspan(offset, size));
  };
  const FoundSegment same = findSame(key, payload.size(), right);
  if (same) return same.segment;
  for (int attempt = 0;; ++attempt) {
    HEARTH_ASSIGN(const FolderRef folder, folders_.writable());
    // A foreign object under the durable name would hide the one written under the other name.
    if (same.reason == StoreReason::kForeign)
      (void)clearPlace(folder->segments(), StoreFolder::segmentPath(key, true),
                       folder->temporary());
    auto segment = writeIn(folder, key, payload);
    if (segment) return segment;
    if (segment.error().reason != StoreReason::kGone || attempt > 0 || !folders_.reopenIfGone())
      return segment;
  }
}

StoreResult<SegmentRef> SegmentTable::writeIn(const FolderRef& folder, const SegmentKey& key,
                                              const SegmentPayload& payload) {
  HEARTH_ASSIGN(TempObject file, TempObject::create(folder->temporary()));
  HEARTH_ASSIGN(SegmentInfo info, writeSegmentFile(file.fd(), key, payload, folders_.boot()));
  HEARTH_ASSIGN(memory::Mapping mapping, mapPayload(file.fd(), payload.size()));
  SegmentDraft draft{folder, std::move(file), std::move(mapping)};
  return place(draft, std::move(info));
}

StoreResult<SegmentDraft> SegmentTable::draft(std::span<const uint8_t> payload) {
  HEARTH_ASSIGN(SegmentDraft draft, startDraft(payload.size()));
  HEARTH_TRY(writeReserved(draft.file.fd(), payload, 0));
  HEARTH_TRY(mapDraft(draft, payload.size()));
  return draft;
}

StoreResult<SegmentDraft> SegmentTable::startDraft(size_t size) {
  const auto startIn = [&](const FolderRef& folder) -> StoreResult<SegmentDraft> {
    HEARTH_ASSIGN(TempObject file, TempObject::create(folder->temporary()));
    HEARTH_TRY(reservePayload(file.fd(), 0, size));
    return SegmentDraft{folder, std::move(file), memory::Mapping()};
  };
  for (int attempt = 0;; ++attempt) {
    HEARTH_ASSIGN(const FolderRef folder, folders_.writable());
    auto draft = startIn(folder);
    if (draft || draft.error().reason != StoreReason::kGone || attempt > 0 ||
        !folders_.reopenIfGone())
      return draft;
  }
}

StoreStatus SegmentTable::mapDraft(SegmentDraft& draft, size_t size) {
  // The file has no tail yet.
  HEARTH_ASSIGN(draft.payload, orFailure(memory::Mapping::ofFile(
                                   draft.file.fd(), 0, size, memory::Mapping::Access::kReadOnly)));
  return {};
}

StoreResult<SegmentRef> SegmentTable::finish(SegmentDraft draft) {
  const size_t size = draft.payload.size();
  // Reads the file instead of the mapping, whose pages would count as this process's memory.
  auto blocks = blockDigests(draft.file.fd(), 0, size, 1);
  if (!blocks) return storeFail(StoreReason::kIoError, "{}", blocks.error().toString());
  const SegmentInfo info{.key = contentSegmentKey(size, *blocks),
                         .payloadSize = size,
                         .writtenIn = folders_.boot(),
                         .blocks = std::move(*blocks)};
  std::vector<uint8_t> block(static_cast<size_t>(std::min<uint64_t>(kSegmentBlock, size)));
  const auto right = [&](uint64_t offset, size_t count) -> StoreResult<std::span<const uint8_t>> {
    HEARTH_TRY(readAt(draft.file.fd(), block.data(), count, offset));
    return std::span<const uint8_t>(block).first(count);
  };
  const FoundSegment same = findSame(info.key, size, right);
  if (same) return same.segment;
  if (same.reason == StoreReason::kForeign)
    (void)clearPlace(draft.folder->segments(), StoreFolder::segmentPath(info.key, true),
                     draft.folder->temporary());
  HEARTH_TRY(writeSegmentTail(draft.file.fd(), info));
  auto placed = place(draft, info);
  if (placed || placed.error().reason != StoreReason::kGone) return placed;
  // The store was deleted meanwhile, and the file with it.
  return write(info.key, {{draft.payload.data(), size}, info.blocks});
}

// Puts a complete file in place under its name.
StoreResult<SegmentRef> SegmentTable::place(SegmentDraft& draft, SegmentInfo info) {
  const SegmentKey key = info.key;
  HEARTH_ASSIGN(const base::Descriptor shard, draft.folder->openShard(key, true));
  HEARTH_TRY(draft.file.placeAt(shard.get(), StoreFolder::segmentName(key, false)));
  struct stat status;
  if (::fstat(draft.file.fd(), &status) != 0)
    return storeErrno(errno, "Reading the state of a new segment");
  tally_.add(&StoreCounters::segmentsWritten);
  tally_.add(&StoreCounters::bytesWritten, info.payloadSize);
  auto segment = std::make_shared<const Segment>(key, std::move(draft.payload));
  {
    // Replaces what is mapped already, which nobody may have checked.
    const std::lock_guard lock(mutex_);
    mapped_[key] = {segment, static_cast<uint64_t>(status.st_dev),
                    static_cast<uint64_t>(status.st_ino)};
  }
  opened_({.folder = draft.folder,
           .generation = FileGeneration::of(status),
           .info = std::move(info),
           .checked = true,
           .segment = segment});
  return segment;
}

bool SegmentTable::reject(const FileGeneration& generation) {
  const std::lock_guard lock(mutex_);
  return rejected_.insert({generation.device, generation.inode, generation.changed}).second;
}

bool SegmentTable::isRejected(const FileGeneration& generation) {
  const std::lock_guard lock(mutex_);
  return rejected_.contains({generation.device, generation.inode, generation.changed});
}

void SegmentTable::drop(const SegmentOrigin& origin, const StoreFailure& why) {
  const SegmentKey& key = origin.info.key;
  const bool isFirst = reject(origin.generation);
  // A file may be mapped more than once: users that came later have another mapping than the one
  // that this check was for, and a check of their own.
  bool isMarked = false;
  for (const SegmentRef& segment : {origin.segment.lock(), mappedFrom(key, origin.generation)})
    isMarked |= segment != nullptr && segment->markCorrupt();
  if (!isFirst) {
    if (isMarked && dropped_) dropped_(key, why);
    return;
  }
  base::logWarn("A wrong segment in {} is dropped. {}", origin.folder->path(), why.message);
  if (origin.folder->isWritable()) {
    const std::string path = StoreFolder::segmentPath(key, origin.durable);
    struct stat status;
    // Another process may have replaced it with a right one meanwhile.
    if (::fstatat(origin.folder->segments(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == origin.generation.inode && status.st_dev == origin.generation.device)
      (void)removeFile(origin.folder->segments(), path);
  } else if (wrong_.add && why.reason == StoreReason::kCorrupt) {
    wrong_.add(key, origin.generation);
  }
  tally_.add(&StoreCounters::segmentsCorrupt);
  if (dropped_) dropped_(key, why);
}

StoreStatus SegmentTable::makeDurable(SegmentOrigin& origin) {
  const SegmentKey& key = origin.info.key;
  const int segments = origin.folder->segments();
  auto file = openObject(segments, StoreFolder::segmentPath(key, false));
  if (!file || !hasBytesOf(file->generation, origin.generation))
    return storeFail(StoreReason::kGone, "The segment {} is no longer there.", key.hex());
  HEARTH_CRASH_POINT("segment.before_sync");
  if (retried([&] { return base::sys::fdatasync(file->descriptor.get()); }) != 0) {
    // The kernel reports a lost page once and treats it as clean afterwards.
    auto failure = storeErrno(errno, base::formatText("Syncing the segment {}", key.hex()));
    drop(origin, failure.error());
    return failure;
  }
  HEARTH_CRASH_POINT("segment.after_sync");
  HEARTH_ASSIGN(const base::Descriptor shard, origin.folder->openShard(key, false));
  const std::string from = StoreFolder::segmentName(key, false);
  const std::string to = StoreFolder::segmentName(key, true);
  const auto rename = [&](const std::string& one, const std::string& other) {
    return retried(
        [&] { return base::sys::renameAt(shard.get(), one.c_str(), shard.get(), other.c_str()); });
  };
  if (rename(from, to) != 0)
    return storeErrno(errno, base::formatText("Marking the segment {}", key.hex()));
  HEARTH_CRASH_POINT("segment.after_mark");
  struct stat status;
  if (::fstatat(shard.get(), to.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return storeErrno(errno, "Reading the state of a marked segment");
  if (!hasBytesOf(FileGeneration::of(status), origin.generation)) {
    // Another process replaced the object at this very moment, and nobody has synced the new one.
    (void)rename(to, from);
    return storeFail(StoreReason::kGone, "The segment {} has been replaced.", key.hex());
  }
  origin.generation = FileGeneration::of(status);
  origin.durable = true;
  return {};
}

void SegmentTable::startWriting(const SegmentOrigin& origin) const {
  const auto file =
      openObject(origin.folder->segments(), StoreFolder::segmentPath(origin.info.key, false));
  if (file) ::sync_file_range(file->descriptor.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

StoreStatus SegmentTable::check(const SegmentOrigin& origin, uint64_t from,
                                const BlockProgress& progress) {
  const SegmentInfo& info = origin.info;
  auto opened = openFile(*origin.folder, info.key);
  if (opened && opened->first.generation.inode == origin.generation.inode &&
      opened->first.generation.device == origin.generation.device)
    return checkSegmentBlocks(opened->first.descriptor.get(), info, from, progress);
  // The object was removed meanwhile, so the mapping is checked.
  if (const SegmentRef segment = origin.segment.lock())
    return checkSegmentPayload(segment->bytes(), info, from, progress);
  return storeFail(StoreReason::kGone, "The segment {} is no longer there.", info.key.hex());
}

std::vector<SegmentKey> SegmentTable::inherit(SegmentTable& parent) {
  mapped_ = parent.mapped_;
  rejected_ = parent.rejected_;
  std::vector<SegmentKey> wrong;
  for (const auto& [key, mapped] : mapped_)
    if (const SegmentRef segment = mapped.segment.lock(); segment && segment->isCorrupt())
      wrong.push_back(key);
  return wrong;
}

}  // namespace hearth::cache
