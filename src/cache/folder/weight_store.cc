// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/weight_store.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fault.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/task_thread.h"
#include "base/wall_clock.h"
#include "cache/blob/blob_cache.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/identity_table.h"
#include "cache/segment/block_checks.h"
#include "cache/store/corruption_handlers.h"
#include "cache/store/open_stores.h"
#include "cache/store/store_facts.h"

namespace hearth::cache {

namespace {

// The fact under which a segment file that cannot be removed is noted as wrong.
std::string wrongFact(const SegmentKey& key, const FileGeneration& file) {
  std::string name("wrong segment\0", 14);
  name.append(key.bytes.begin(), key.bytes.end());
  name.append(reinterpret_cast<const char*>(&file), sizeof file);
  return name;
}

}  // namespace

struct StoreParts : StoreWorkers {
  StoreParts(std::shared_ptr<StoreFolders> storeFolders,
             std::shared_ptr<CorruptionHandlers> storeHandlers,
             std::function<void(SegmentOrigin)> openedHandler)
      : StoreWorkers("hearth-store", checkMemory(this), std::move(storeHandlers)),
        folders(std::move(storeFolders)),
        segments(*folders, tally, std::move(openedHandler)),
        plans(*folders) {
    segments.onDropped([this](const SegmentKey& key, const StoreFailure&) { handlers->call(key); });
    if (const FolderRef own = folders->own()) {
      identities.emplace(own->root(), own->path(), own->isWritable());
      facts.emplace(own, kFactsFile, kFactLimits);
      buildLock = BuildLock::open(*own);
      identityFolder = own;
      segments.rememberWrong({.has =
                                  [this](const SegmentKey& key, const FileGeneration& file) {
                                    return facts->get(wrongFact(key, file)).has_value();
                                  },
                              .add =
                                  [this](const SegmentKey& key, const FileGeneration& file) {
                                    if (!folders->writable()) return;
                                    facts->set(wrongFact(key, file), std::vector<uint8_t>{1});
                                    (void)facts->save();
                                  }});
    }
  }

  static BlockChecks::Memory checkMemory(StoreParts* self) {
    return {.isLasting =
                [self] {
                  return self->identities && self->identityFolder->isWritable() &&
                         self->folders->boot() != BootId{};
                },
            .recall =
                [self](std::span<const base::Sha256Digest> ids) {
                  return self->identities->checkedBlocks(ids);
                },
            .remember =
                [self](std::span<const CheckedBlocks> checks) {
                  self->identities->rememberCheckedBlocks(checks);
                }};
  }

  const std::shared_ptr<StoreFolders> folders;
  SegmentTable segments;
  PlanTable plans;
  FolderRef identityFolder;  // keeps the descriptor that `identities` uses
  std::optional<IdentityTable> identities;
  std::optional<BlobCache> facts;
  base::Mutex buildLockMutex;
  std::shared_ptr<BuildLock> buildLock;
  base::Mutex roomMutex;
  uint64_t limit = 0;  // 0 = not yet known
  uint64_t used = 0;   // bytes on disk, as far as this process knows
  std::chrono::steady_clock::time_point sumAgain{};
  base::Mutex unmarkedMutex;
  std::vector<std::shared_ptr<SegmentOrigin>> unmarked;  // to be synced and renamed
};

namespace {

// Bytes that may wait to be copied into files while packing goes on, not counting what each packing
// thread has in hand.
constexpr size_t kCopyQueue = size_t{4} << 20;
// Each draft has an open file.
constexpr size_t kMostDrafts = 64;
// A process syncs only after living so long: a shorter one would wait for the disk at its end.
constexpr std::chrono::seconds kSyncDelay{5};
constexpr std::chrono::seconds kSumPeriod{30};
constexpr int64_t kForgetAfter = int64_t{180} * 24 * 3600;  // seconds
// What was written longer ago than this (nanoseconds) the kernel has written to disk by itself, so
// syncing it costs nothing.
constexpr int64_t kWrittenBackAfter = int64_t{60} * 1'000'000'000;

class DraftWriter final : public SegmentWriter {
 public:
  DraftWriter(SegmentDraft draft, size_t size, std::shared_ptr<BuildLock> builders)
      : draft_(std::move(draft)), size_(size), builders_(std::move(builders)) {}

  StoreStatus append(std::span<const uint8_t> bytes) override {
    if (bytes.size() > size_ - written_)
      return storeFail(StoreReason::kBadRequest, "{} bytes follow {} of a segment of {}.",
                       bytes.size(), written_, size_);
    HEARTH_TRY(writeReserved(draft_.file.fd(), bytes, written_));
    written_ += bytes.size();
    if (builders_ != nullptr) builders_->noteProgress();
    return {};
  }

  StoreResult<const memory::Mapping*> map() override {
    if (written_ != size_)
      return storeFail(StoreReason::kBadRequest, "A segment of {} bytes has only {}.", size_,
                       written_);
    HEARTH_TRY(SegmentTable::mapDraft(draft_, size_));
    return &draft_.payload;
  }

  SegmentDraft take() { return std::move(draft_); }

 private:
  SegmentDraft draft_;
  const size_t size_;
  size_t written_ = 0;
  const std::shared_ptr<BuildLock> builders_;
};

// Guarded by base::ForkAware::registryMutex.
constinit base::Immortal<OpenStores<WeightStore>> openStores;

}  // namespace

StoreResult<std::shared_ptr<WeightStore>> WeightStore::open(const StoreOptions& options) {
  // Declared first: if memory runs out, the store must be destroyed after the registry's lock,
  // which its destructor takes, is released. A shared pointer that finds no memory for its counts
  // destroys a bare pointer at once, but leaves a unique one alone.
  std::unique_ptr<WeightStore> made;
  std::shared_ptr<WeightStore> store;
  const std::lock_guard lock(registryMutex());
  store = openStores.get().find(options);
  if (store != nullptr) {
    store->parts_->folders->reopenIfGone();
    return store;
  }
  HEARTH_ASSIGN(std::unique_ptr<StoreFolders> folders, StoreFolders::open(options));
  made.reset(new WeightStore(std::move(folders)));
  store = std::move(made);
  store->joinForkRegistry(lock);
  openStores.get().add(options, store);
  return store;
}

WeightStore::WeightStore(std::unique_ptr<StoreFolders> folders)
    : DiskStore(PlanCapacity::kMany),
      parts_(new StoreParts(std::move(folders), std::make_shared<CorruptionHandlers>(),
                            [this](SegmentOrigin origin) { opened(std::move(origin)); })) {}

WeightStore::~WeightStore() {
  leaveForkRegistry();
  parts_->stop();
  delete parts_;
}

const StoreOptions& WeightStore::options() const {
  return parts_->folders->options();
}

StoreWorkers& WeightStore::workers() const {
  return *parts_;
}

IdentityTable* WeightStore::identities() const {
  return parts_->identities ? &*parts_->identities : nullptr;
}

std::shared_ptr<BuildLock> WeightStore::buildLock() const {
  const std::lock_guard lock(parts_->buildLockMutex);
  return parts_->buildLock;
}

StoreFailure WeightStore::writability() const {
  const auto folder = parts_->folders->writable();
  return folder ? StoreFailure{} : folder.error();
}

FoundSegment WeightStore::find(const SegmentKey& key) {
  return parts_->segments.find(key);
}

std::shared_ptr<BuildLock> WeightStore::builders() {
  return parts_->folders->writable() ? buildLock() : nullptr;
}

StoreResult<SegmentRef> WeightStore::publish(const SegmentKey& key, const SegmentPayload& payload) {
  HEARTH_TRY(makeRoom(payload.size()));
  auto segment = parts_->segments.write(key, payload);
  noteProgress();
  return segment;
}

void WeightStore::publishAsync(PublishRequest request) {
  if (request.written != nullptr) return publishWritten(std::move(request));
  if (!request.key && request.copied && !request.payload.empty())
    return publishCopied(std::move(request));
  DiskStore::publishAsync(std::move(request));
}

struct WeightStore::DraftWork {
  PublishRequest request;
  std::optional<SegmentDraft> draft;
  void end(StoreResult<SegmentRef> result) {
    request.ticket.release();
    if (request.done) request.done(std::move(result));
  }
};

std::unique_ptr<SegmentWriter> WeightStore::beginWriting(size_t size) {
  auto draft = storeCaught([&]() -> StoreResult<SegmentDraft> {
    HEARTH_TRY(makeRoom(size));
    return parts_->segments.startDraft(size);
  });
  if (draft) return std::make_unique<DraftWriter>(std::move(*draft), size, buildLock());
  base::logDebug("{} bytes cannot be written in parts. {}", size, draft.error().message);
  return nullptr;
}

void WeightStore::publishWritten(PublishRequest request) {
  const auto work = std::make_shared<DraftWork>();
  work->draft.emplace(static_cast<DraftWriter&>(*request.written).take());
  request.written = nullptr;
  work->request = std::move(request);
  finishLater(work);
}

void WeightStore::publishCopied(PublishRequest request) {
  const size_t size = request.payload.size();
  const auto work = std::make_shared<DraftWork>();
  work->request = std::move(request);
  const auto write = [this, work] {
    auto draft = storeCaught([&]() -> StoreResult<SegmentDraft> {
      HEARTH_TRY(makeRoom(work->request.payload.size()));
      return parts_->segments.draft(work->request.payload);
    });
    if (!draft) return work->end(std::unexpected(std::move(draft.error())));
    work->draft.emplace(std::move(*draft));
    work->request.copied(work->draft->payload);
    noteProgress();
  };
  if (!parts_->writer.tryPost(write, size, kCopyQueue)) write();
  finishLater(work);
}

void WeightStore::finishLater(const std::shared_ptr<DraftWork>& work) {
  const auto finish = [this, work] {
    if (!work->draft) return;
    auto segment = storeCaught([&] { return parts_->segments.finish(std::move(*work->draft)); });
    noteProgress();
    work->end(std::move(segment));
  };
  base::TaskThread& writer = parts_->writer;
  if (writer.postHeld(finish, kMostDrafts)) return;
  writer.release();
  if (!writer.post(finish)) finish();
}

void WeightStore::noteProgress() {
  if (const std::shared_ptr<BuildLock> lock = buildLock()) lock->noteProgress();
}

void WeightStore::opened(SegmentOrigin found) {
  StoreParts& parts = *parts_;
  if (found.checked && (found.durable || !found.folder->isWritable())) return;
  const auto origin = std::make_shared<SegmentOrigin>(std::move(found));
  if (origin->checked) {
    parts.checker.post([this, origin] { markLater(origin); });
    return;
  }
  const SegmentInfo& info = origin->info;
  auto check = std::make_shared<BlockCheck>();
  check->id = [this, origin] {
    return IdentityTable::checkedKey(origin->info.key, origin->generation, parts_->folders->boot());
  };
  check->blocks = info.blocks.size();
  // Runs in this process or in a forked child, which has parts of its own.
  check->run = [this, origin](uint64_t from, const BlockProgress& progress) {
    StoreParts& parts = *parts_;
    bool isEnded = false;
    StoreStatus status = parts.segments.check(*origin, from, [&](uint64_t block) {
      isEnded = !progress(block);
      if (!isEnded) parts.tally.add(&StoreCounters::bytesChecked, origin->info.blockSize(block));
      return !isEnded;
    });
    if (status && !isEnded) parts.tally.add(&StoreCounters::segmentsChecked);
    return status;
  };
  check->end = [this, origin](const StoreStatus& status) {
    if (!status) {
      if (status.error().reason == StoreReason::kCorrupt)
        parts_->segments.drop(*origin, status.error());
      return;
    }
    origin->checked = true;
    markLater(origin);
  };
  parts.addCheck(std::move(check));
}

void WeightStore::markLater(std::shared_ptr<SegmentOrigin> origin) {
  StoreParts& parts = *parts_;
  if (origin->durable || !origin->folder->isWritable()) return;
  // A time in the future counts as fresh, too. No time makes the difference overflow.
  const int64_t modified = origin->generation.modified;
  const bool isFresh = modified > base::wallClock() - kWrittenBackAfter;
  bool isFirst = false;
  {
    const std::lock_guard lock(parts.unmarkedMutex);
    isFirst = parts.unmarked.empty();
    parts.unmarked.push_back(std::move(origin));
  }
  if (!isFresh)
    makeDurable();
  else if (isFirst)
    parts.checker.postLater([this] { makeDurable(); }, kSyncDelay);
}

void WeightStore::makeDurable() {
  StoreParts& parts = *parts_;
  std::vector<std::shared_ptr<SegmentOrigin>> origins;
  {
    const std::lock_guard lock(parts.unmarkedMutex);
    origins.swap(parts.unmarked);
  }
  for (const auto& origin : origins) parts.segments.startWriting(*origin);
  for (const auto& origin : origins) {
    if (parts.checker.isStopping()) return;
    if (StoreStatus status = parts.segments.makeDurable(*origin); !status) {
      base::logDebug("A segment stays unmarked. {}", status.error().message);
      continue;
    }
    if (IdentityTable* const table = identities())
      table->rememberChecked(origin->info.key, origin->generation, parts.folders->boot());
  }
}

uint64_t WeightStore::maxBytes() const {
  constexpr uint64_t kMost = uint64_t{16} << 30;
  if (const uint64_t bytes = options().maxBytes; bytes != 0) return bytes;
  const FolderRef own = parts_->folders->own();
  struct statvfs system;
  if (own == nullptr || ::fstatvfs(own->root(), &system) != 0) return kMost;
  return std::min<uint64_t>(kMost, uint64_t{system.f_frsize} * system.f_blocks / 10);
}

StoreStatus WeightStore::makeRoom(uint64_t bytes) {
  StoreParts& parts = *parts_;
  HEARTH_ASSIGN(const FolderRef folder, parts.folders->writable());
  const std::lock_guard lock(parts.roomMutex);
  const auto time = std::chrono::steady_clock::now();
  // The digests of a segment take 1/32768 of its size, and files take whole blocks.
  const uint64_t needed = bytes + bytes / 32768 + 8192;
  const auto isFull = [&] {
    return needed > parts.limit || parts.used > parts.limit - needed;
  };
  if (parts.limit == 0) parts.limit = maxBytes();
  // Other processes write too, so the sum is computed anew from time to time, and before an error.
  if (time >= parts.sumAgain || isFull()) {
    parts.used = StoreInventory::bytesOf(*folder);
    parts.sumAgain = time + kSumPeriod;
  }
  if (isFull() && needed <= parts.limit) {
    // Frees more than needed, so that the objects that follow do not collect again.
    const uint64_t spare = std::min(parts.limit - needed, parts.limit / 20);
    if (auto report = collectIn(*folder, {.maxBytes = parts.limit - needed - spare}))
      parts.used = report->bytesLeft;
  }
  if (isFull())
    return storeFail(StoreReason::kOverLimit,
                     "{} bytes do not fit into the store's limit of {} bytes, of which {} are "
                     "taken by what is in use.",
                     bytes, parts.limit, parts.used);
  parts.used += needed;
  return {};
}

StoreResult<PruneReport> WeightStore::collectIn(const StoreFolder& folder,
                                                const PruneOptions& pruneOptions) {
  const std::shared_ptr<BuildLock> lock = buildLock();
  if (lock == nullptr || !lock->tryLockCollection())
    return storeFail(StoreReason::kBusy, "Another process collects garbage in {}.", folder.path());
  const PruneReport report = collect(folder, options().fingerprint, pruneOptions);
  lock->unlockCollection();
  return report;
}

StoreResult<PruneReport> WeightStore::prune(const PruneOptions& pruneOptions) {
  HEARTH_ASSIGN(const FolderRef folder, parts_->folders->writable());
  const std::lock_guard lock(parts_->roomMutex);
  HEARTH_ASSIGN(const PruneReport report, collectIn(*folder, pruneOptions));
  parts_->used = report.bytesLeft;
  if (IdentityTable* const table = identities()) table->forgetOlderThan(kForgetAfter);
  return report;
}

StoreResult<StoreInventory> WeightStore::inventory() const {
  const FolderRef own = parts_->folders->own();
  if (own == nullptr) return std::unexpected(writability());
  return StoreInventory::of(*own);
}

StoreResult<WeightStore::VerifyReport> WeightStore::verifyAll(
    const std::function<bool(uint64_t, uint64_t)>& progress) {
  const FolderRef own = parts_->folders->own();
  if (own == nullptr) return std::unexpected(writability());
  const StoreInventory inventory = StoreInventory::of(*own);
  VerifyReport report;
  for (const StoreInventory::Plan& plan : inventory.plans) {
    ++report.plans;
    if (!plan.isCorrupt) continue;
    ++report.wrongPlans;
    if (own->isWritable()) (void)removeFile(own->plans(), StoreFolder::planName(plan.key));
  }
  uint64_t all = 0;
  for (const auto& [key, segment] : inventory.segments) all += segment.bytesOnDisk;
  for (const auto& [key, segment] : inventory.segments) {
    if (progress && !progress(report.bytes, all)) return report;
    const StoreStatus status = parts_->segments.verify(own, key);
    report.bytes += segment.bytesOnDisk;
    ++report.segments;
    // Do not count a segment that was removed meanwhile.
    if (!status && status.error().reason == StoreReason::kAbsent)
      --report.segments;
    else if (!status)
      ++report.wrongSegments;
  }
  if (parts_->facts) {
    const auto facts = parts_->facts->verify();
    report.wrongFacts = !facts && (facts.error().reason == StoreReason::kCorrupt ||
                                   facts.error().reason == StoreReason::kForeign);
    if (!facts && !report.wrongFacts) return std::unexpected(facts.error());
    report.facts = facts.value_or(0);
  }
  report.isComplete = true;
  return report;
}

StoreStatus WeightStore::remove(const PlanKey& key) {
  HEARTH_ASSIGN(const FolderRef folder, parts_->folders->writable());
  const StoreInventory inventory = StoreInventory::of(*folder);
  const auto plan = std::ranges::find(inventory.plans, key, &StoreInventory::Plan::key);
  if (plan == inventory.plans.end())
    return storeFail(StoreReason::kAbsent, "There is no plan {}.", key.hex());
  HEARTH_TRY(removeFile(folder->plans(), StoreFolder::planName(key)));
  (void)removeFile(folder->stamps(), key.hex());
  std::unordered_map<SegmentKey, uint32_t> uses;
  for (const SegmentKey& segment : plan->segments) ++uses[segment];
  for (const auto& [segment, count] : uses) {
    const auto known = inventory.segments.find(segment);
    if (known == inventory.segments.end() || known->second.plans > count) continue;
    for (const bool durable : {true, false})
      HEARTH_TRY(removeFile(folder->segments(), StoreFolder::segmentPath(segment, durable)));
  }
  return {};
}

StoreStatus WeightStore::removeAll() {
  HEARTH_ASSIGN(const FolderRef folder, parts_->folders->writable());
  const StoreInventory inventory = StoreInventory::of(*folder);
  for (const StoreInventory::Plan& plan : inventory.plans)
    HEARTH_TRY(removeFile(folder->plans(), StoreFolder::planName(plan.key)));
  for (const auto& [key, segment] : inventory.segments)
    for (const bool durable : {true, false})
      HEARTH_TRY(removeFile(folder->segments(), StoreFolder::segmentPath(key, durable)));
  for (const StoreInventory::Other& stamp : inventory.stamps)
    (void)removeFile(folder->stamps(), stamp.name);
  for (const StoreInventory::Other& file : inventory.temporaries)
    if (!file.isLocked) (void)removeFile(folder->temporary(), file.name);
  if (parts_->facts) HEARTH_TRY(parts_->facts->removeAll());
  HEARTH_TRY(clearPlace(folder->root(), kPipelinesFile, folder->temporary()));
  if (IdentityTable* const table = identities()) table->forgetOlderThan(0);
  return {};
}

StoreResult<PlanRef> WeightStore::findPlan(const PlanKey& key) {
  return parts_->plans.find(key);
}

StoreResult<PlanRef> WeightStore::keepPlan(PlanContent content) {
  HEARTH_TRY(makeRoom(content.bytes.size() + content.segments.size() * sizeof(SegmentKey)));
  HEARTH_ASSIGN(PlanRef plan, parts_->plans.write(std::move(content)));
  parts_->checker.postLater([plan] { (void)base::sys::fdatasync(plan->descriptor()); }, kSyncDelay);
  return plan;
}

SegmentStore::ContentDigests WeightStore::contentDigests() {
  return {identities(), parts_->hashed};
}

std::optional<std::vector<uint8_t>> WeightStore::recall(std::string_view key) {
  return parts_->facts ? parts_->facts->get(key) : std::nullopt;
}

void WeightStore::remember(std::span<const Fact> facts) {
  StoreParts& parts = *parts_;
  if (!parts.facts || !parts.folders->writable()) return;
  for (const Fact& fact : facts) parts.facts->set(fact.key, fact.value);
  if (const StoreStatus saved = parts.facts->save(); !saved)
    base::logDebug("What is known of this machine is not kept. {}", saved.error().message);
}

void WeightStore::renewInChild() {
  StoreParts& old = *parts_;
  if (old.buildLock != nullptr) old.buildLock->abandonInChild();
  if (old.facts) old.facts->closeInChild();
  auto* const fresh = new StoreParts(old.folders, old.handlers,
                                     [this](SegmentOrigin origin) { opened(std::move(origin)); });
  const std::vector<SegmentKey> wrong = fresh->segments.inherit(old.segments);
  parts_ = fresh;
  fresh->inherit(old, wrong);
}

}  // namespace hearth::cache
