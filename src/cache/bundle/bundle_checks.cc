// SPDX-License-Identifier: Apache-2.0
// How a bundle store checks its segments, drops wrong ones and makes the file durable.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/log.h"
#include "cache/bundle/bundle_parts.h"
#include "cache/bundle/bundle_store.h"

namespace hearth::cache {
namespace {

constexpr std::chrono::seconds kSyncDelay{5};

}  // namespace

void BundleStore::checkLater(const std::shared_ptr<BundleFile>& file) {
  BundleParts& parts = *parts_;
  auto check = std::make_shared<BlockCheck>();
  check->id = [this, file] {
    return file->checkedNote(parts_->boot);
  };
  for (const SegmentInfo& info : file->info.content.segments) check->blocks += info.blocks.size();
  check->run = [this, file](uint64_t from, const BlockProgress& progress) {
    return checkBlocks(*file, from, progress);
  };
  check->end = [this, file](const StoreStatus& status) {
    if (status && !file->isDropped() &&
        (file->isDoubtful || !parts_->notes->has(file->durableNote())))
      makeDurable(file);
  };
  parts.addCheck(std::move(check));
}

// Checks the blocks of all segments, one segment after the other. A wrong segment is dropped at
// once and the others are checked all the same, so that a process repairs all wrong segments that
// it uses.
StoreStatus BundleStore::checkBlocks(BundleFile& file, uint64_t from,
                                     const BlockProgress& progress) {
  BundleParts& parts = *parts_;
  StoreStatus result;
  bool isEnded = false;
  uint64_t begin = 0;
  for (const SegmentInfo& info : file.info.content.segments) {
    const uint64_t first = std::exchange(begin, begin + info.blocks.size());
    if (from >= begin) continue;
    const uint64_t skipped = from > first ? from - first : 0;
    const StoreStatus status =
        checkSegmentBlocks(file.descriptor.get(), info, skipped, [&](uint64_t block) {
          // Blocks after a wrong one do not count as checked.
          isEnded = !progress(result ? first + block : from);
          if (!isEnded) parts.tally.add(&StoreCounters::bytesChecked, info.blockSize(block));
          return !isEnded;
        });
    if (isEnded) return result;
    if (status) {
      parts.tally.add(&StoreCounters::segmentsChecked);
      continue;
    }
    if (status.error().reason != StoreReason::kCorrupt) return status;
    drop(file, info.key, status.error());
    result = status;
  }
  return result;
}

void BundleStore::makeDurable(const std::shared_ptr<BundleFile>& file) {
  BundleParts& parts = *parts_;
  if (parts.options.mode == StoreMode::kReadOnly) return;
  parts.checker.postLater(
      [this, &parts, file] {
        if (retried([&] { return base::sys::fdatasync(file->descriptor.get()); }) != 0) {
          // The kernel reports a lost page once and treats it as clean afterwards.
          const StoreFailure why =
              storeErrno(errno, base::formatText("Syncing the bundle {}", parts.name)).error();
          for (const SegmentInfo& info : file->info.content.segments) drop(*file, info.key, why);
          return;
        }
        HEARTH_CRASH_POINT("bundle.after_sync");
        parts.notes->add(file->durableNote());
        HEARTH_CRASH_POINT("bundle.after_mark");
      },
      kSyncDelay);
}

void BundleStore::drop(BundleFile& file, const SegmentKey& key, const StoreFailure& why) {
  BundleParts& parts = *parts_;
  bool isFirst;
  {
    const std::lock_guard lock(file.mutex);
    isFirst = file.wrong.empty();
    if (!file.wrong.insert(key).second) return;
    // Counted here, so that a thread that finds the segment gone also finds it counted.
    parts.tally.add(&StoreCounters::segmentsCorrupt);
  }
  {
    const std::lock_guard lock(parts.mutex);
    if (const auto mapped = parts.mapped.find(key); mapped != parts.mapped.end())
      if (const SegmentRef segment = mapped->second.lock()) segment->markCorrupt();
  }
  if (isFirst) {
    base::logWarn("The bundle {} is dropped. {}", parts.options.bundle, why.message);
    struct stat status;
    // Other processes shall not find the bundle either. This one goes on with what is right in it.
    if (parts.options.mode != StoreMode::kReadOnly &&
        ::fstatat(parts.folder->get(), parts.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == file.generation.inode && status.st_dev == file.generation.device)
      (void)removeFile(parts.folder->get(), parts.name);
  }
  parts.handlers->call(key);
}

}  // namespace hearth::cache
