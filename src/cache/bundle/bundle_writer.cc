// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle/bundle_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

namespace sys = base::sys;

std::string buildingName(const std::string& name) {
  return name + ".building";
}

// The lock is released only by closing the file, so there is no unlocking.
bool tryLock(int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return retried([&] { return ::fcntl(fd, F_OFD_SETLK, &lock); }) == 0;
}

bool isSameFile(int fd, int folder, const std::string& name) {
  struct stat own;
  struct stat there;
  return ::fstat(fd, &own) == 0 &&
         ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

}  // namespace

StoreResult<std::unique_ptr<BundleWriter>> BundleWriter::start(int folder, const std::string& name,
                                                               const BootId& boot) {
  const std::string building = buildingName(name);
  const auto busy = [&] {
    return storeFail(StoreReason::kBusy, "Another process writes the bundle {}.", name);
  };
  const auto openIt = [&](int flags) {
    return retried([&] {
      return sys::openAt(folder, building.c_str(),
                         O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
    });
  };
  // More processes than this are not expected to come in between.
  for (int round = 0; round < 100; ++round) {
    std::unique_ptr<BundleWriter> writer(new BundleWriter(folder, name, boot));
    writer->descriptor_.reset(openIt(O_CREAT | O_EXCL));
    if (writer->descriptor_.valid()) {
      HEARTH_CRASH_POINT("bundle.after_create");
      // Before the lock was taken, another process may have removed the file as a leftover.
      if (tryLock(writer->fd()) && isSameFile(writer->fd(), folder, building)) return writer;
      writer->isFinished_ = true;
      continue;
    }
    if (errno != EEXIST) return storeErrno(errno, base::formatText("Creating {}", building));
    const base::Descriptor leftover(openIt(0));
    if (!leftover.valid()) {
      if (errno == ENOENT) continue;
      return storeFail(StoreReason::kForeign, "{} is no file that a bundle is written in.",
                       building);
    }
    struct stat status;
    if (::fstat(leftover.get(), &status) != 0 || !S_ISREG(status.st_mode) || !isTrusted(status))
      return storeFail(StoreReason::kForeign, "{} is no file that a bundle is written in.",
                       building);
    if (!tryLock(leftover.get())) return busy();
    // Removed, never truncated: a process may still have parts of it mapped.
    if (isSameFile(leftover.get(), folder, building)) HEARTH_TRY(removeFile(folder, building));
  }
  return busy();
}

std::optional<FileGeneration> BundleWriter::otherProgress(int folder, const std::string& name) {
  struct stat status;
  if (::fstatat(folder, buildingName(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return FileGeneration::of(status);
}

bool BundleWriter::isInPlace() const {
  return isSameFile(fd(), folder_, buildingName(name_));
}

BundleWriter::~BundleWriter() {
  if (!isFinished_ && descriptor_.valid() && isInPlace())
    (void)removeFile(folder_, buildingName(name_));
}

StoreResult<base::Descriptor> BundleWriter::duplicate() const {
  auto second = descriptor_.duplicate();
  if (!second) return storeFail(StoreReason::kIoError, "{}", second.error().toString());
  return std::move(*second);
}

std::optional<SegmentInfo> BundleWriter::find(const SegmentKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = segments_.find(key);
  if (found == segments_.end()) return std::nullopt;
  return found->second;
}

std::vector<SegmentInfo> BundleWriter::segments() const {
  const std::lock_guard lock(mutex_);
  std::vector<SegmentInfo> result;
  for (const auto& [key, info] : segments_) result.push_back(info);
  return result;
}

bool BundleWriter::isEmpty() const {
  const std::lock_guard lock(mutex_);
  return segments_.empty();
}

StoreResult<SegmentInfo> BundleWriter::add(const SegmentKey& key, const SegmentPayload& payload) {
  if (payload.size() == 0)
    return storeFail(StoreReason::kBadRequest, "The segment {} has no bytes.", key.hex());
  SegmentInfo info{.key = key,
                   .offset = bundlePayloadOffset(end_, payload.size()),
                   .payloadSize = payload.size(),
                   .writtenIn = boot_};
  HEARTH_TRY(writePayload(fd(), payload, info));
  HEARTH_CRASH_POINT("bundle.after_payload");
  end_ = info.offset + info.payloadSize;
  const std::lock_guard lock(mutex_);
  segments_.insert_or_assign(key, info);
  return info;
}

StoreResult<SegmentInfo> BundleWriter::copy(int from, const SegmentInfo& info) {
  SegmentInfo copied = info;
  copied.offset = bundlePayloadOffset(end_, info.payloadSize);
  copied.writtenIn = boot_;
  std::vector<uint8_t> buffer(static_cast<size_t>(std::min(kSegmentBlock, info.payloadSize)));
  for (size_t i = 0; i < info.blocks.size(); ++i) {
    const uint64_t start = i * kSegmentBlock;
    HEARTH_TRY(checkSegmentBlock(from, info, i, buffer));
    HEARTH_TRY(writeAt(fd(), buffer.data(),
                       static_cast<size_t>(std::min(kSegmentBlock, info.payloadSize - start)),
                       copied.offset + start));
  }
  HEARTH_CRASH_POINT("bundle.after_copy");
  end_ = copied.offset + copied.payloadSize;
  const std::lock_guard lock(mutex_);
  segments_.insert_or_assign(copied.key, copied);
  return copied;
}

StoreResult<BundleInfo> BundleWriter::finish(PlanContent plan, BlobMap facts, BundleNotes& notes) {
  BundleInfo bundle{.head = {.writtenIn = boot_}};
  std::unordered_map<SegmentKey, SegmentInfo> wanted;
  for (const SegmentKey& key : plan.segments) {
    const std::optional<SegmentInfo> info = find(key);
    if (!info) return storeFail(StoreReason::kAbsent, "There is no segment {}.", key.hex());
    wanted.insert_or_assign(key, *info);
  }
  for (auto& [key, info] : wanted) bundle.content.segments.push_back(std::move(info));
  std::ranges::sort(bundle.content.segments, {}, &SegmentInfo::offset);
  bundle.content.plan = std::move(plan);
  bundle.content.facts = std::move(facts);
  HEARTH_ASSIGN(const std::vector<uint8_t> index,
                makeBundleIndex(bundle.content, end_, bundle.head));
  HEARTH_TRY(writeAt(fd(), index.data(), index.size(), bundle.head.indexOffset));
  HEARTH_CRASH_POINT("bundle.after_index");
  if (retried([&] { return sys::ftruncate(fd(), static_cast<off_t>(bundle.head.fileSize)); }) != 0)
    return storeErrno(errno, "Giving a new bundle its length");
  const std::vector<uint8_t> head = makeBundleHead(bundle.head);
  HEARTH_TRY(writeAt(fd(), head.data(), head.size(), 0));
  HEARTH_ASSIGN(base::Descriptor noteFile, duplicate());
  notes.keepContentsOnly();
  notes.attach(std::move(noteFile), bundle.head.notesOffset);
  HEARTH_CRASH_POINT("bundle.before_rename");
  const std::string building = buildingName(name_);
  if (!isInPlace())
    return storeFail(StoreReason::kGone, "{} was removed while it was written.", building);
  if (retried([&] { return sys::renameAt(folder_, building.c_str(), folder_, name_.c_str()); }) !=
      0)
    return storeErrno(errno, base::formatText("Putting the bundle {} in place", name_));
  isFinished_ = true;
  HEARTH_CRASH_POINT("bundle.after_rename");
  return bundle;
}

}  // namespace hearth::cache
