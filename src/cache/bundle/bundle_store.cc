// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle/bundle_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "base/format.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cache/bundle/bundle_parts.h"
#include "cache/store/open_stores.h"
#include "memory/mapping.h"

namespace hearth::cache {
namespace {

// Left segments keep files open, so those of failed starts are not kept for ever.
constexpr size_t kMostLeft = 4096;
constexpr std::chrono::microseconds kShortestPause{200};
constexpr std::chrono::microseconds kLongestPause{5000};

// Guarded by base::ForkAware::registryMutex.
constinit base::Immortal<OpenStores<BundleStore>> openBundles;

// Whether a damaged file is or was to become a bundle, and may therefore be replaced: at most one
// of its first bytes differs from a bundle's, or its whole head was lost.
StoreResult<bool> wasBundle(int fd, uint64_t size) {
  std::vector<uint8_t> start(static_cast<size_t>(std::min<uint64_t>(size, kBundleHeadSize)));
  HEARTH_TRY(readAt(fd, start.data(), start.size(), 0));
  if (std::ranges::all_of(start, [](uint8_t byte) { return byte == 0; })) return true;
  const std::vector<uint8_t> head = makeBundleHead({});
  constexpr size_t kMagic = 8;
  size_t differing = 0;
  for (size_t i = 0; i < std::min(kMagic, start.size()); ++i) differing += start[i] != head[i];
  return differing <= 1 && start.size() >= 2;
}

}  // namespace

StoreResult<std::shared_ptr<BundleStore>> BundleStore::open(const StoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The weight store is switched off.");
  const size_t slash = options.bundle.rfind('/');
  const std::string name =
      slash == std::string::npos ? options.bundle : options.bundle.substr(slash + 1);
  std::string folder = slash == std::string::npos ? "." : options.bundle.substr(0, slash);
  if (slash == 0) folder = "/";
  if (name.empty() || name == "." || name == "..")
    return storeFail(StoreReason::kBadRequest, "The bundle \"{}\" names no file.", options.bundle);
  // Destroyed after the registry's lock is released, also when there is no memory for a shared
  // pointer's counts.
  std::unique_ptr<BundleStore> made;
  std::shared_ptr<BundleStore> store;
  const std::lock_guard lock(registryMutex());
  store = openBundles.get().find(options);
  if (store != nullptr) return store;
  base::Descriptor parent(retried([&] {
    return base::sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  if (!parent.valid())
    return storeErrno(errno, base::formatText("Opening the folder of {}", options.bundle));
  made.reset(new BundleStore(std::make_unique<BundleParts>(options, std::move(parent), name)));
  store = std::move(made);
  if (StoreStatus status = store->refresh();
      !status && status.error().reason == StoreReason::kForeign)
    return std::unexpected(std::move(status.error()));
  store->joinForkRegistry(lock);
  openBundles.get().add(options, store);
  return store;
}

BundleStore::BundleStore(std::unique_ptr<BundleParts> parts)
    : DiskStore(PlanCapacity::kOne), parts_(parts.release()) {}

BundleStore::~BundleStore() {
  leaveForkRegistry();
  parts_->stop();
  delete parts_;
}

StoreStatus BundleStore::refresh() {
  BundleParts& parts = *parts_;
  const auto none = [&](StoreFailure why) -> StoreStatus {
    const std::lock_guard lock(parts.mutex);
    // Goes on with a bundle that this process has dropped, since parts of it are right.
    if (parts.current != nullptr && parts.current->isDropped() &&
        why.reason == StoreReason::kAbsent)
      return {};
    parts.current = nullptr;
    parts.reason = why;
    return std::unexpected(std::move(why));
  };
  auto file = openObject(parts.folder->get(), parts.name);
  if (!file) return none(std::move(file.error()));
  {
    const std::lock_guard lock(parts.mutex);
    if (parts.current != nullptr && parts.current->isStill(file->generation)) return {};
  }
  const int fd = file->descriptor.get();
  auto info = readBundleInfo(fd, file->generation.size);
  if (!info) {
    if (info.error().reason == StoreReason::kCorrupt) {
      auto replaceable = wasBundle(fd, file->generation.size);
      if (replaceable && !*replaceable)
        return none(
            {StoreReason::kForeign, base::formatText("The file {} is no bundle, and is left "
                                                     "alone.",
                                                     parts.options.bundle)});
      base::logWarn("The bundle {} is not used. {}", parts.options.bundle, info.error().message);
      parts.tally.add(&StoreCounters::segmentsCorrupt);
    }
    return none(std::move(info.error()));
  }
  const auto loaded = std::make_shared<BundleFile>();
  loaded->generation = file->generation;
  loaded->descriptor = std::move(file->descriptor);
  loaded->info = std::move(*info);
  loaded->prepare();
  base::Descriptor writable;
  if (parts.options.mode != StoreMode::kReadOnly) {
    writable.reset(::openat(parts.folder->get(), parts.name.c_str(),
                            O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status;
    if (writable.valid() &&
        (::fstat(writable.get(), &status) != 0 || !mayBeWritten(status) ||
         status.st_ino != loaded->generation.inode || status.st_dev != loaded->generation.device))
      writable.reset();
  }
  parts.notes->read(loaded->descriptor.get(), loaded->info.head.notesOffset, std::move(writable));
  // A bundle whose sync was never confirmed may hold zeros after a power failure.
  const bool isChecked =
      parts.boot != BootId{} && parts.notes->has(loaded->checkedNote(parts.boot));
  loaded->isDoubtful = !isSameBoot(loaded->info.head.writtenIn, parts.boot) && !isChecked &&
                       !parts.notes->has(loaded->durableNote());
  const std::lock_guard lock(parts.mutex);
  parts.current = loaded;
  parts.reason = {};
  return {};
}

StoreFailure BundleStore::writability() const {
  BundleParts& parts = *parts_;
  if (parts.options.mode == StoreMode::kReadOnly)
    return {StoreReason::kReadOnly, "The store's mode is read-only."};
  const std::lock_guard lock(parts.mutex);
  if (parts.writeFailure.reason != StoreReason::kNone) return parts.writeFailure;
  if (parts.reason.reason == StoreReason::kForeign) return parts.reason;
  if (::faccessat(parts.folder->get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return storeErrno(errno,
                      base::formatText("Asking for leave to write beside {}", parts.options.bundle))
        .error();
  return {};
}

SegmentRef BundleStore::share(const SegmentKey& key, SegmentRef segment) {
  const std::lock_guard lock(parts_->mutex);
  std::weak_ptr<const Segment>& mapped = parts_->mapped[key];
  if (SegmentRef other = mapped.lock(); other && !other->isCorrupt()) return other;
  mapped = segment;
  return segment;
}

FoundSegment BundleStore::find(const SegmentKey& key) {
  BundleParts& parts = *parts_;
  std::shared_ptr<BundleFile> current;
  std::shared_ptr<BundleWriter> writer;
  StoreReason reason;
  {
    const std::lock_guard lock(parts.mutex);
    if (const auto mapped = parts.mapped.find(key); mapped != parts.mapped.end())
      if (SegmentRef segment = mapped->second.lock(); segment && !segment->isCorrupt())
        return {std::move(segment)};
    current = parts.current;
    writer = parts.writer;
    reason = current != nullptr ? StoreReason::kAbsent : parts.reason.reason;
  }
  const auto take = [&](StoreResult<SegmentRef> segment) -> FoundSegment {
    if (!segment) return {.reason = segment.error().reason};
    parts.tally.add(&StoreCounters::segmentsFound);
    return {.segment = std::move(*segment)};
  };
  if (writer != nullptr)
    if (const std::optional<SegmentInfo> info = writer->find(key))
      if (auto mapping = memory::Mapping::ofFile(writer->fd(), info->offset,
                                                 static_cast<size_t>(info->payloadSize),
                                                 memory::Mapping::Access::kReadOnly))
        return take(share(key, std::make_shared<Segment>(key, std::move(*mapping))));
  if (current != nullptr)
    if (const auto place = current->index.find(key); place != current->index.end())
      return take(load(current, current->info.content.segments[place->second]));
  return {.reason = reason};
}

StoreResult<SegmentRef> BundleStore::load(const std::shared_ptr<BundleFile>& file,
                                          const SegmentInfo& info) {
  BundleParts& parts = *parts_;
  bool isChecked;
  {
    const std::lock_guard lock(file->mutex);
    if (file->wrong.contains(info.key))
      return storeFail(StoreReason::kCorrupt, "The segment {} is known to be wrong.",
                       info.key.hex());
    isChecked = file->checked.contains(info.key);
  }
  if ((parts.options.mode == StoreMode::kStrict || file->isDoubtful) && !isChecked) {
    if (StoreStatus status = checkSegmentBlocks(file->descriptor.get(), info); !status) {
      if (status.error().reason == StoreReason::kCorrupt) drop(*file, info.key, status.error());
      return std::unexpected(std::move(status.error()));
    }
    const std::lock_guard lock(file->mutex);
    file->checked.insert(info.key);
  }
  auto mapping = memory::Mapping::ofFile(file->descriptor.get(), info.offset,
                                         static_cast<size_t>(info.payloadSize),
                                         memory::Mapping::Access::kReadOnly);
  if (!mapping) return storeFail(StoreReason::kIoError, "{}", mapping.error().toString());
  SegmentRef segment = share(info.key, std::make_shared<Segment>(info.key, std::move(*mapping)));
  {
    // The check may have found it wrong before the mapping could be marked.
    const std::lock_guard lock(file->mutex);
    if (file->wrong.contains(info.key)) {
      segment->markCorrupt();
      return storeFail(StoreReason::kCorrupt, "The segment {} is known to be wrong.",
                       info.key.hex());
    }
  }
  if (!file->isCheckQueued.exchange(true)) checkLater(file);
  return segment;
}

StoreResult<std::shared_ptr<BundleWriter>> BundleStore::writer() {
  BundleParts& parts = *parts_;
  if (parts.options.mode == StoreMode::kReadOnly)
    return storeFail(StoreReason::kReadOnly, "The store's mode is read-only.");
  const std::lock_guard lock(parts.mutex);
  if (parts.writer != nullptr) return parts.writer;
  if (parts.reason.reason == StoreReason::kForeign) return std::unexpected(parts.reason);
  auto started = BundleWriter::start(parts.folder->get(), parts.name, parts.boot);
  if (!started) {
    if (started.error().reason != StoreReason::kBusy) parts.writeFailure = started.error();
    return std::unexpected(std::move(started.error()));
  }
  parts.writeFailure = {};
  parts.writer = std::move(*started);
  return parts.writer;
}

void BundleStore::stopIfUnused(std::shared_ptr<BundleWriter> writer) {
  const std::lock_guard lock(parts_->mutex);
  // This function has one reference and the store another; a thread that is about to write has a
  // third.
  if (parts_->writer == writer && writer.use_count() == 2 && writer->isEmpty())
    parts_->writer = nullptr;
}

std::shared_ptr<BuildLock> BundleStore::builders() {
  return parts_->buildLock;
}

BuildTicket BundleStore::beginBuilding(const SegmentKey& key, std::chrono::nanoseconds patience,
                                       BuildLock::Hold hold) {
  using Clock = std::chrono::steady_clock;
  BundleParts& parts = *parts_;
  // This thread may build as far as this process goes; now the processes compete.
  std::optional<FileGeneration> last;
  Clock::time_point lastMove = Clock::now();
  std::chrono::microseconds pause = kShortestPause;
  for (;;) {
    auto started = writer();
    if (!started && started.error().reason != StoreReason::kBusy) return {};
    // Another process may have finished after the search for the segment and before the start.
    if (!started || (*started)->isEmpty()) (void)refresh();
    if (SegmentRef segment = find(key).segment) {
      if (started) stopIfUnused(std::move(*started));
      return BuildTicket(std::move(segment));
    }
    if (started) {
      hold.noteProgress();
      // If the caller finds that nothing is to be built, others need not wait.
      return BuildTicket(
          std::move(hold),
          std::shared_ptr<void>(
              nullptr, [store = weak_from_this(), writer = std::move(*started)](void*) mutable {
                if (const auto self = store.lock()) self->stopIfUnused(std::move(writer));
              }));
    }
    const auto progress = BundleWriter::otherProgress(parts.folder->get(), parts.name);
    if (progress != last) {
      last = progress;
      lastMove = Clock::now();
      pause = kShortestPause;
      // Lets the other threads of this process see that something moves.
      hold.noteProgress();
    }
    {
      const std::lock_guard lock(parts.mutex);
      if (progress && parts.hopeless == progress) return {};
      if (Clock::now() - lastMove >= patience) {
        // The next caller need not wait as long for the same writer.
        parts.hopeless = progress;
        return {};
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 3 / 2, kLongestPause);
  }
}

// Finds a segment that the next plan can name and that holds the bytes in the caller's hands. All
// bytes are compared: a segment that merely bears the right name must not replace them. Null when
// there is none.
SegmentRef BundleStore::findSame(const SegmentKey& key, std::span<const uint8_t> right) {
  BundleParts& parts = *parts_;
  std::shared_ptr<BundleFile> current;
  {
    const std::lock_guard lock(parts.mutex);
    if (parts.current != nullptr && parts.current->index.contains(key)) current = parts.current;
    // Any other segment is only still mapped, and in no file that a plan can name.
    if (current == nullptr && (parts.writer == nullptr || !parts.writer->find(key))) return nullptr;
  }
  const SegmentRef found = find(key).segment;
  if (found == nullptr) return nullptr;
  if (std::ranges::equal(found->bytes(), right)) return found;
  if (current != nullptr)
    drop(*current, key,
         {StoreReason::kCorrupt, base::formatText("The segment {} has changed.", key.hex())});
  found->markCorrupt();
  return nullptr;
}

StoreResult<SegmentRef> BundleStore::publish(const SegmentKey& key, const SegmentPayload& payload) {
  BundleParts& parts = *parts_;
  if (SegmentRef same = findSame(key, payload.bytes)) return same;
  const std::lock_guard writing(parts.writing);
  HEARTH_ASSIGN(const std::shared_ptr<BundleWriter> target, writer());
  auto info = target->add(key, payload);
  if (!info) {
    const std::lock_guard lock(parts.mutex);
    parts.writeFailure = info.error();
    return std::unexpected(std::move(info.error()));
  }
  auto mapping = memory::Mapping::ofFile(target->fd(), info->offset, payload.size(),
                                         memory::Mapping::Access::kReadOnly);
  if (!mapping) return storeFail(StoreReason::kIoError, "{}", mapping.error().toString());
  parts.tally.add(&StoreCounters::segmentsWritten);
  parts.tally.add(&StoreCounters::bytesWritten, payload.size());
  return share(key, std::make_shared<Segment>(key, std::move(*mapping)));
}

StoreResult<PlanRef> BundleStore::findPlan(const PlanKey& key) {
  HEARTH_TRY(refresh());
  const std::lock_guard lock(parts_->mutex);
  if (parts_->current == nullptr) return std::unexpected(parts_->reason);
  if (parts_->current->isDropped())
    return storeFail(StoreReason::kCorrupt, "A segment of the bundle {} has changed.",
                     parts_->options.bundle);
  if (parts_->current->plan->content().key != key)
    return storeFail(StoreReason::kOtherPlan,
                     "The bundle {} holds the plan {}, of another model, library or CPU.",
                     parts_->options.bundle, parts_->current->plan->content().key.hex());
  return parts_->current->plan;
}

std::optional<PlanDescription> BundleStore::heldPlan() {
  if (!refresh()) return std::nullopt;
  const std::lock_guard lock(parts_->mutex);
  if (parts_->current == nullptr) return std::nullopt;
  return parts_->current->plan->description();
}

StoreResult<PlanRef> BundleStore::keepPlan(PlanContent content) {
  BundleParts& parts = *parts_;
  // Another program may have put something else in place meanwhile.
  if (StoreStatus status = refresh(); !status && status.error().reason == StoreReason::kForeign)
    return std::unexpected(std::move(status.error()));
  const std::lock_guard writing(parts.writing);
  HEARTH_ASSIGN(const std::shared_ptr<BundleWriter> target, writer());
  std::shared_ptr<BundleFile> old;
  BlobMap newFacts;
  BlobMap facts;
  std::unordered_map<SegmentKey, LeftSegment> left;
  {
    const std::lock_guard lock(parts.mutex);
    old = parts.current;
    left = parts.left;
    newFacts = parts.newFacts;
    facts = factsBeside(old.get(), content.key);
  }
  const auto fill = [&]() -> StoreStatus {
    for (const SegmentKey& segment : content.segments) {
      if (target->find(segment)) continue;
      if (const auto kept = left.find(segment); kept != left.end()) {
        const auto copied = target->copy(kept->second.file->get(), kept->second.info);
        if (copied) continue;
        // The next start in this process packs the segment anew.
        const std::lock_guard lock(parts.mutex);
        parts.left.erase(segment);
        return std::unexpected(copied.error());
      }
      if (old == nullptr) continue;
      const auto place = old->index.find(segment);
      if (place == old->index.end()) continue;
      const auto copied =
          target->copy(old->descriptor.get(), old->info.content.segments[place->second]);
      if (copied) continue;
      if (copied.error().reason == StoreReason::kCorrupt) drop(*old, segment, copied.error());
      return std::unexpected(copied.error());
    }
    return {};
  };
  StoreStatus filled = fill();
  content.fingerprint = parts.options.fingerprint;
  StoreResult<BundleInfo> info =
      filled ? target->finish(std::move(content), std::move(facts), *parts.notes)
             : std::unexpected(std::move(filled.error()));
  if (!info) {
    const std::lock_guard lock(parts.mutex);
    if (info.error().reason != StoreReason::kAbsent) parts.writeFailure = info.error();
    return std::unexpected(std::move(info.error()));
  }
  const auto file = std::make_shared<BundleFile>();
  HEARTH_ASSIGN(file->descriptor, target->duplicate());
  file->info = std::move(*info);
  struct stat status;
  if (::fstat(file->descriptor.get(), &status) != 0)
    return storeErrno(errno, "Reading the state of a new bundle");
  file->generation = FileGeneration::of(status);
  file->prepare();
  for (const SegmentInfo& segment : file->info.content.segments) left.erase(segment.key);
  std::shared_ptr<const base::Descriptor> written;
  for (const SegmentInfo& segment : target->segments()) {
    if (file->index.contains(segment.key)) continue;
    if (written == nullptr) {
      HEARTH_ASSIGN(base::Descriptor descriptor, target->duplicate());
      written = std::make_shared<const base::Descriptor>(std::move(descriptor));
    }
    left.insert_or_assign(segment.key, LeftSegment{written, segment});
  }
  if (left.size() > kMostLeft) left.clear();
  // This process has written or compared every byte.
  file->isCheckQueued = true;
  if (parts.boot != BootId{}) parts.notes->add(file->checkedNote(parts.boot));
  {
    const std::lock_guard lock(parts.mutex);
    parts.current = file;
    parts.reason = {};
    parts.writeFailure = {};
    parts.writer = nullptr;
    parts.left = std::move(left);
    std::erase_if(parts.newFacts, [&](const auto& entry) {
      const auto taken = newFacts.find(entry.first);
      return taken != newFacts.end() && taken->second == entry.second;
    });
  }
  makeDurable(file);
  return file->plan;
}

SegmentStore::ContentDigests BundleStore::contentDigests() {
  return {parts_->notes.get(), parts_->hashed};
}

StoreWorkers& BundleStore::workers() const {
  return *parts_;
}

void BundleStore::renewInChild() {
  BundleParts& old = *parts_;
  if (old.writer != nullptr) old.writer->closeInChild();
  auto* const fresh = new BundleParts(old, nullptr);
  parts_ = fresh;
  std::vector<SegmentKey> wrong;
  for (const auto& [key, mapped] : fresh->mapped)
    if (const SegmentRef segment = mapped.lock(); segment != nullptr && segment->isCorrupt())
      wrong.push_back(key);
  fresh->inherit(old, wrong);
}

}  // namespace hearth::cache
